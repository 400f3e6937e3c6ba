import Glibc

/// The destination of log lines: a descriptor that the process owns, by default standard error.
package struct LogOutput: Sendable {
    /// The number of bytes that a pipe accepts atomically, without bytes of other processes between them (pipe(7)).
    package static let atomicSize = Int(PIPE_BUF)

    private let descriptor: Int32

    package init(descriptor: Int32 = STDERR_FILENO) { self.descriptor = descriptor }

    /// Writes a line with as few calls as possible, so that lines of several processes do not mix. Blocks while the
    /// reader does not read, and ignores errors.
    package func write(_ line: String) { try? deliver(line) }

    /// Writes a line as ``write(_:)`` does, but throws if not all of it can be written.
    /// - Throws: the error of write(2).
    package func deliver(_ text: String) throws(Errno) {
        var text = text
        let failure = text.withUTF8 { bytes -> Errno? in
            var remaining = UnsafeRawBufferPointer(bytes)
            while let start = remaining.baseAddress, !remaining.isEmpty {
                let count = Glibc.write(descriptor, start, remaining.count)
                if count < 0 && errno == EINTR { continue }
                guard count > 0 else { return .current }
                remaining = UnsafeRawBufferPointer(rebasing: remaining[count...])
            }
            return nil
        }
        if let failure { throw failure }
    }

    /// Writes a prefix of `bytes`, up to ``atomicSize``, as soon as the descriptor has room.
    ///
    /// It calls poll(2) first, so that a pipe, terminal or socket without a reader does not block the caller even if
    /// its file description is in blocking mode.
    ///
    /// - Parameter milliseconds: the maximum time to wait for room.
    /// - Returns: the count of bytes written; 0 if there was no room.
    /// - Throws: the error of write(2), such as `EPIPE`, `ENOSPC` or `EBADF`.
    package func writeSome(_ bytes: UnsafeRawBufferPointer, waiting milliseconds: Int) throws(Errno) -> Int {
        var entry = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        guard poll(&entry, 1, Int32(milliseconds)) > 0 else { return 0 }
        let count = Glibc.write(descriptor, bytes.baseAddress, min(bytes.count, Self.atomicSize))
        if count >= 0 { return count }
        let error = Errno.current
        if error == .wouldBlock || error == .interrupted { return 0 }
        throw error
    }

    /// Writes a line. Stops if nothing can be written for `milliseconds`.
    package func write(_ line: String, waiting milliseconds: Int) {
        var line = line
        line.withUTF8 { bytes in
            var remaining = UnsafeRawBufferPointer(bytes)
            while !remaining.isEmpty, let count = try? writeSome(remaining, waiting: milliseconds), count > 0 {
                remaining = UnsafeRawBufferPointer(rebasing: remaining[count...])
            }
        }
    }
}
