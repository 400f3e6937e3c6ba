import FoundationEssentials
import Glibc
import SystemCalls
import TestSupport

/// The data directory of a server, which tests read and change without the server.
package struct ServerData: Sendable {
    package let path: String

    package init(_ path: String) { self.path = path }

    /// The path of a published file.
    package func path(of name: String) -> String { path + "/files/" + name }

    /// The content of a published file; `nil` if there is no such file.
    package func published(_ name: String) -> [UInt8]? {
        FileManager.default.contents(atPath: path(of: name)).map { Array($0) }
    }

    /// The names of the published files and of their directories, at any depth.
    package func publishedNames() -> [String] {
        (try? FileManager.default.subpathsOfDirectory(atPath: path + "/files")) ?? []
    }

    /// The names of the contents of unfinished uploads, with their sizes.
    package var unfinished: [String: Int] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: path + "/uploads")) ?? []
        var sizes: [String: Int] = [:]
        for name in names where !name.hasPrefix(".") {
            let attributes = try? FileManager.default.attributesOfItem(atPath: "\(path)/uploads/\(name)")
            if let size = attributes?[.size] as? Int { sizes[name] = size }
        }
        return sizes
    }

    /// Removes the bytes of all unfinished uploads from `size` on. The stored offsets are kept.
    package func truncateUnfinished(to size: Int) throws {
        for name in unfinished.keys {
            guard truncate("\(path)/uploads/\(name)", size) == 0 else { throw TestFailure("\(name) was not truncated") }
        }
    }

    /// Creates a published file without the server, as a user might do.
    package func place(_ bytes: [UInt8], as name: String) throws {
        try Data(bytes).write(to: URL(filePath: path(of: name)))
    }

    /// Creates a published directory and its missing parent directories.
    package func makeDirectories(_ name: String) throws {
        try FileManager.default.createDirectory(atPath: path(of: name), withIntermediateDirectories: true)
    }

    /// Sets the modification time of a published file, in seconds since 1970.
    package func setModified(_ name: String, to seconds: Int, nanoseconds: Int = 0) throws {
        var times = [
            timespec(tv_sec: seconds, tv_nsec: nanoseconds), timespec(tv_sec: seconds, tv_nsec: nanoseconds),
        ]
        guard utimensat(AT_FDCWD, path(of: name), &times, 0) == 0 else { throw Errno.current }
    }

    /// Writes into a published file, beyond its end if necessary.
    package func writeSparse(_ bytes: [UInt8], at offset: Int, of name: String) throws {
        let descriptor = open(path(of: name), O_WRONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw Errno.current }
        defer { close(descriptor) }
        guard pwrite(descriptor, bytes, bytes.count, off_t(offset)) == bytes.count else { throw Errno.current }
    }
}

package func symlinkFile(_ destination: String, _ path: String) -> Bool { symlink(destination, path) == 0 }

package func makePipe(_ path: String) -> Bool { mkfifo(path, 0o600) == 0 }

/// Whether two large contents are equal; much faster than `==` without optimization.
package func areEqual(_ left: some Collection<UInt8>, _ right: some Collection<UInt8>) -> Bool {
    let isEqual = left.withContiguousStorageIfAvailable { left in
        right.withContiguousStorageIfAvailable { right in
            guard left.count == right.count, let first = left.baseAddress, let second = right.baseAddress else {
                return left.count == right.count
            }
            return memcmp(first, second, left.count) == 0
        }
    }
    return (isEqual ?? nil) ?? left.elementsEqual(right)
}

extension String {
    /// The text with percent-encoding for the path of a URL; slashes are not encoded.
    package var addingEscapes: String {
        var result = ""
        for byte in utf8 {
            let isPlain = (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
            if isPlain || "-._~/".utf8.contains(byte) {
                result.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                result += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
            }
        }
        return result
    }
}
