import FoundationEssentials
import Glibc
import SystemCalls

/// A new directory in the system's temporary directory. It is removed with its content when this object is released.
package final class TemporaryDirectory: Sendable {
    package let path: String

    package init() throws {
        let base = ProcessInfo.processInfo.environment["TMPDIR"] ?? "/tmp"
        var template = Array((base + "/onward-test-XXXXXX").utf8CString)
        guard mkdtemp(&template) != nil else { throw Errno.current }
        path = template.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } ?? "" }
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// Writes a file into the directory and returns its path.
    package func file(_ name: String, _ bytes: some Sequence<UInt8>) throws -> String {
        let path = path + "/" + name
        let descriptor = try FileDescriptor.open(path, [.writeOnly, .create, .truncate])
        try Array(bytes).withUnsafeBytes { try descriptor.write($0, at: 0) }
        return path
    }
}

/// The text of a file; empty if it cannot be read.
package func textOfFile(_ path: String) -> String {
    String(decoding: FileManager.default.contents(atPath: path) ?? Data(), as: UTF8.self)
}
