import ConformanceKit
import FoundationEssentials
import Glibc
import SystemCalls
import Testing

extension ServerProcess {
    /// The URL of a path of this server.
    func url(_ path: String) -> String { "http://\(authority)\(path)" }

    /// The path of a published file.
    func path(of name: String) -> String { root + "/files/" + name }

    /// The content of a published file; `nil` if the file does not exist.
    func fileContent(_ name: String) -> [UInt8]? { published(name) }

    /// Publishes a file by a plain PUT.
    @discardableResult
    func publish(_ bytes: [UInt8], as name: String) throws -> Response {
        let response = try exchange(Request("PUT", "/files/" + name, [], .bytes(bytes)))
        try #require(response.isSuccessful, "\(response)")
        return response
    }

    /// Creates a file among the published ones without the server, as a user might do. With a shared storage it is
    /// uploaded.
    func place(_ bytes: [UInt8], as name: String) throws {
        if shared != nil {
            let digits = Array("0123456789ABCDEF".utf8)
            let target = name.utf8.flatMap { byte -> [UInt8] in
                let isPlain = byte == UInt8(ascii: "/") || byte == UInt8(ascii: ".") || Character(.init(byte)).isLetter
                return isPlain && byte < 0x80
                    ? [byte] : [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
            try publish(bytes, as: String(decoding: target, as: UTF8.self))
            return
        }
        try Data(bytes).write(to: URL(filePath: path(of: name)))
    }

    /// Creates a directory among the published ones, and those that contain it.
    func makeDirectories(_ path: String) throws {
        if let shared { return try shared.makeDirectories(path) }
        try FileManager.default.createDirectory(atPath: self.path(of: path), withIntermediateDirectories: true)
    }

    /// Sets the modification time of a published file, in seconds since 1970.
    func setModified(_ name: String, to seconds: Int, nanoseconds: Int = 0) throws {
        if let shared {
            try shared.database.query(
                """
                UPDATE onward.name SET modified = \(seconds)000000000 + \(nanoseconds)
                WHERE CASE parent WHEN '' THEN name ELSE parent || '/' || name END = '\(name)'
                """)
            return
        }
        var times = [
            timespec(tv_sec: seconds, tv_nsec: nanoseconds), timespec(tv_sec: seconds, tv_nsec: nanoseconds),
        ]
        guard utimensat(AT_FDCWD, path(of: name), &times, 0) == 0 else { throw Errno.current }
    }

    /// Sends `GET` for a file.
    func download(_ name: String, _ fields: [(String, String)] = []) throws -> Response {
        try exchange(Request("GET", "/files/" + name, fields))
    }
}

extension ServerProcess {
    /// Writes into a published file, beyond its end if necessary.
    func writeSparse(_ bytes: [UInt8], at offset: Int, of name: String) throws {
        let descriptor = open(path(of: name), O_WRONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw Errno.current }
        defer { close(descriptor) }
        guard pwrite(descriptor, bytes, bytes.count, off_t(offset)) == bytes.count else {
            throw Errno.current
        }
    }
}

func symlinkFile(_ destination: String, _ path: String) -> Bool { symlink(destination, path) == 0 }

func makePipe(_ path: String) -> Bool { mkfifo(path, 0o600) == 0 }

/// Whether two large contents are equal; much faster than `==` without optimization.
func areEqual(_ left: some Collection<UInt8>, _ right: some Collection<UInt8>) -> Bool {
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

/// The size of a file in bytes; 0 if the file does not exist.
func fileSize(_ path: String) -> Int {
    var information = stat()
    return stat(path, &information) == 0 ? Int(information.st_size) : 0
}
