import Digests
import Foundation
import Glibc
import SystemCalls

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
