import Glibc

extension FileDescriptor {
    /// Writes from the start of `bytes` at the offset and returns how many bytes went in, which may be fewer
    /// (pwrite(2)).
    public func writeSome(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(Errno) -> Int {
        guard let base = bytes.baseAddress, !bytes.isEmpty else { return 0 }
        return try retryingOnInterrupt { pwrite(rawValue, base, bytes.count, off_t(offset)) }
    }

    /// Writes all of `bytes` at the offset. After an error any prefix of them may be in place.
    public func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(Errno) {
        var done = 0
        while done < bytes.count {
            done += try writeSome(UnsafeRawBufferPointer(rebasing: bytes[done...]), at: offset + Int64(done))
        }
    }

    /// Fills `buffer` from the offset on and returns the bytes read: fewer than asked for only at the end of the file
    /// (pread(2)).
    public func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(Errno) -> Int {
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

    /// Sets the length (ftruncate(2)).
    public func truncate(to size: Int64) throws(Errno) {
        _ = try retryingOnInterrupt { ftruncate(rawValue, off_t(size)) }
    }
}
