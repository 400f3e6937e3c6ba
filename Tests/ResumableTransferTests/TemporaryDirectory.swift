import Foundation
import Glibc
import SystemCalls

/// A directory of its own below the system's temporary one, removed with everything in it when this object goes.
final class TemporaryDirectory: Sendable {
    let path: String

    init() throws {
        let base = ProcessInfo.processInfo.environment["TMPDIR"] ?? "/tmp"
        var template = Array((base + "/onward-test-XXXXXX").utf8CString)
        guard mkdtemp(&template) != nil else { throw Errno.current }
        path = template.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } ?? "" }
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// Writes a file into the directory and gives its path.
    func file(_ name: String, _ bytes: [UInt8]) throws -> String {
        let path = path + "/" + name
        let descriptor = try FileDescriptor.open(path, [.writeOnly, .create, .truncate])
        try bytes.withUnsafeBytes { try descriptor.write($0, at: 0) }
        return path
    }
}
