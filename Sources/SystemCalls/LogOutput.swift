import Glibc

/// The destination of log lines: a descriptor that the process owns, by default standard error.
package struct LogOutput: Sendable {
    /// The number of bytes that a pipe accepts atomically, without bytes of other processes between them (pipe(7)).
    package static let atomicSize = Int(PIPE_BUF)

    private let descriptor: Int32

    package init(descriptor: Int32 = STDERR_FILENO) { self.descriptor = descriptor }

    /// Writes a line with as few calls as possible, so that lines of several processes do not mix. Blocks while the
    /// reader does not read, and ignores errors.
    package func write(_ line: String) { try? writeOrThrow(line) }

    /// Writes a line as ``write(_:)`` does, but throws if not all of it can be written.
    /// - Throws: the error of write(2).
    package func writeOrThrow(_ text: String) throws(Errno) {
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

/// A bounded queue of lines between the threads that log and the thread that writes. The queue keeps the order of the
/// lines, and its operations never wait.
///
/// An entry that does not fit is dropped and counted. Later entries are also dropped until the next batch is removed.
/// So a batch has no gap, and all dropped entries are newer than its entries.
package struct LogQueue<Entry> {
    package struct Batch {
        package var entries: [Entry]
        /// The number of entries that were dropped after the last of `entries`.
        package var dropped: Int
    }

    package let maxEntries: Int
    package let maxBytes: Int
    /// The number of entries that were dropped since the queue was created.
    package private(set) var droppedTotal = 0
    private var entries: [Entry] = []
    private var bytes = 0
    private var lastSize = 0
    private var dropped = 0

    package init(maxEntries: Int = .max, maxBytes: Int) {
        self.maxEntries = maxEntries
        self.maxBytes = maxBytes
    }

    /// - Parameter size: the bytes that the entry occupies, approximately.
    package mutating func append(_ entry: Entry, size: Int) {
        guard dropped == 0, entries.count < maxEntries, bytes + size <= maxBytes else {
            countDropped(1)
            dropped += 1
            return
        }
        entries.append(entry)
        bytes += size
        lastSize = size
    }

    /// Appends an entry. The new entry replaces the newest entry of the queue if `isReplaceable` returns true for that
    /// entry; the replaced entry is not counted as dropped.
    package mutating func append(_ entry: Entry, size: Int, replacing isReplaceable: (Entry) -> Bool) {
        if dropped == 0, let last = entries.last, isReplaceable(last) {
            entries.removeLast()
            bytes -= lastSize
        }
        append(entry, size: size)
    }

    /// Whether ``removeAll()`` would return `nil`.
    package var isEmpty: Bool { entries.isEmpty && dropped == 0 }

    /// Removes and returns all entries; returns `nil` if there are no entries and no entry was dropped.
    package mutating func removeAll() -> Batch? {
        guard !isEmpty else { return nil }
        defer {
            entries = []
            bytes = 0
            dropped = 0
        }
        return Batch(entries: entries, dropped: dropped)
    }

    /// Counts entries that were removed from the queue and could not be written.
    package mutating func countDropped(_ count: Int) { droppedTotal += count }
}

/// Properties of the terminal that a descriptor refers to.
package enum Terminal {
    /// Whether the descriptor refers to a terminal (isatty(3)).
    package static func isTerminal(_ descriptor: Int32) -> Bool { isatty(descriptor) == 1 }

    /// The current number of columns; `nil` if it is unknown or there is no terminal.
    package static func columns(of descriptor: Int32) -> Int? {
        var size = winsize()
        guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return nil }
        return Int(size.ws_col)
    }
}
