import CLinux
import Glibc

extension FileDescriptor {
    /// Writes `bytes`, or a prefix of them, at the offset and returns how many were written (pwrite(2)).
    package func writeSome(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(Errno) -> Int {
        guard let base = bytes.baseAddress, !bytes.isEmpty else { return 0 }
        return try retryingOnInterrupt { pwrite(rawValue, base, bytes.count, off_t(offset)) }
    }

    /// Writes all of `bytes` at the offset. After an error any prefix of them may be written.
    package func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(Errno) {
        var done = 0
        while done < bytes.count {
            done += try writeSome(UnsafeRawBufferPointer(rebasing: bytes[done...]), at: offset + Int64(done))
        }
    }

    package func write(_ bytes: [UInt8], at offset: Int64) throws(Errno) {
        try bytes.withUnsafeBufferPointer { (buffer) throws(Errno) in
            try write(UnsafeRawBufferPointer(buffer), at: offset)
        }
    }

    /// Fills `buffer` from the offset on and returns the number of bytes read, which is smaller than the buffer only at
    /// the end of the file (pread(2)).
    package func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(Errno) -> Int {
        guard let base = buffer.baseAddress else { return 0 }
        var done = 0
        while done < buffer.count {
            let count = try retryingOnInterrupt {
                pread(rawValue, base + done, buffer.count - done, off_t(offset) + off_t(done))
            }
            if count == 0 { break }
            done += count
        }
        return done
    }

    /// The bytes of the file from `start` to its end.
    /// - Throws: `fileTooLarge` if there are more than `limit`; the error of the read.
    package func content(from start: Int64 = 0, atMost limit: Int = .max) throws(Errno) -> [UInt8] {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
        defer { buffer.deallocate() }
        var content: [UInt8] = []
        while true {
            let count = try read(into: buffer, at: start + Int64(content.count))
            content += buffer[..<count]
            guard content.count <= limit else { throw .fileTooLarge }
            guard count == buffer.count else { return content }
        }
    }

    /// Sets the size of the file (ftruncate(2)).
    package func truncate(to size: Int64) throws(Errno) {
        _ = try retryingOnInterrupt { ftruncate(rawValue, off_t(size)) }
    }

    /// Frees the space of `count` bytes at the offset, which are then zero; the size does not change (fallocate(2)).
    package func punchHole(at offset: Int64, count: Int64) throws(Errno) {
        let mode = Int32(ONWARD_FALLOC_KEEP_SIZE | ONWARD_FALLOC_PUNCH_HOLE)
        _ = try retryingOnInterrupt { fallocate(rawValue, mode, off_t(offset), off_t(count)) }
    }
}
