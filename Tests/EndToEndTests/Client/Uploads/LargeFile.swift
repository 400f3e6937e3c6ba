import Digests
import Foundation
import Glibc
import SystemCalls
import TestSupport
import Testing

/// A generated file that is too large to be kept in memory.
struct LargeFile {
    let path: String
    let size: Int64

    /// The size of the file of an endurance test: 256 MiB, or `ONWARD_LARGE_FILE`, a number of MiB.
    static var usualSize: Int64 {
        (ProcessInfo.processInfo.environment["ONWARD_LARGE_FILE"].flatMap { Int64($0) } ?? 256) << 20
    }

    /// Writes the file.
    init(_ path: String, size: Int64 = LargeFile.usualSize, seed: UInt64) throws {
        self.path = path
        self.size = size
        let file = try FileDescriptor.open(path, [.writeOnly, .create, .exclusive])
        var block = Payload.bytes(1 << 20, seed: seed)
        var offset: Int64 = 0
        while offset < size {
            // Every block contains its offset, so that a block in the wrong place is noticed.
            withUnsafeBytes(of: offset) { block.replaceSubrange(0..<8, with: $0) }
            let count = Int(min(Int64(block.count), size - offset))
            try block[..<count].withUnsafeBytes { try file.write($0, at: offset) }
            offset += Int64(count)
        }
    }

    /// Writes the file, and publishes it on a server.
    init(_ name: String, publishedOn server: ServerProcess, seed: UInt64) throws {
        if server.shared == nil {
            try self.init(server.path(of: name), seed: seed)
        } else {
            try self.init(server.directory.path + "/" + name, seed: seed)
            let run = try Tool.curl.run(["-f", "-T", path, server.url("/files/" + name)])
            guard run == .exited(0) else { throw TestFailure("curl: \(run)") }
        }
    }

    /// The SHA-256 of a file, in hexadecimal.
    static func digest(_ path: String) throws -> String {
        let file = try FileDescriptor.open(path, [.readOnly])
        var digest = RunningDigest(.sha256)
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 1)
        defer { buffer.deallocate() }
        var offset: Int64 = 0
        while true {
            let count = try file.read(into: buffer, at: offset)
            if count == 0 { break }
            digest.update(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            offset += Int64(count)
        }
        return digest.finalized().map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    }
}

extension ServerProcess {
    /// The SHA-256 of a published file, in hexadecimal.
    func digest(of name: String) throws -> String {
        if shared == nil { return try LargeFile.digest(path(of: name)) }
        return try #require(published(name)).sha256
    }
}
