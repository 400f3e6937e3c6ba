import SystemCalls

/// Writes complete lines, several with one call, and never blocks in write(2). Used by one thread.
///
/// A call writes ``LogOutput/atomicSize`` bytes at most, and a line is only divided if it is longer: on a pipe that several
/// processes share, lines do not mix.
struct LogWriter {
    /// Lines that are lost and were not reported: dropped before, or failed here.
    var lost = 0
    private let output: LogOutput
    private let expired: () -> Bool
    private var failedLines = 0
    private var buffer: [UInt8] = []
    private var lines = 0
    /// An error left a line without its end.
    private var isCut = false

    /// - Parameter expired: whether to stop waiting for room in the output.
    init(output: LogOutput, expired: @escaping () -> Bool) {
        self.output = output
        self.expired = expired
        buffer.reserveCapacity(LogOutput.atomicSize)
    }

    /// Whether what does not fit into the output at once is lost.
    var isExpired: Bool { expired() }

    /// - Parameter line: without its end.
    mutating func append(_ line: String) {
        if buffer.count + line.utf8.count + 1 > LogOutput.atomicSize { flush() }
        buffer += line.utf8
        buffer.append(UInt8(ascii: "\n"))
        lines += 1
    }

    /// Writes what was appended: waits for room, and counts the lines that fail.
    mutating func flush() {
        guard lines > 0 else { return }
        if isCut { buffer.insert(UInt8(ascii: "\n"), at: 0) }
        let written = write()
        if written < buffer.count {
            let complete = buffer[..<written].count { $0 == UInt8(ascii: "\n") } - (isCut && written > 0 ? 1 : 0)
            failedLines += lines - complete
            lost += lines - complete
            if written > 0 { isCut = buffer[written - 1] != UInt8(ascii: "\n") }
        } else {
            isCut = false
        }
        buffer.removeAll(keepingCapacity: true)
        lines = 0
    }

    /// Writes a line that reports ``lost``. If that fails, the count stays for the next one.
    mutating func reportLost(_ line: String) {
        let count = lost
        append(line)
        flush()
        if lost == count {
            lost = 0
        } else {
            lost = count
            failedLines -= 1
        }
    }

    /// The lines that failed since this was asked last.
    mutating func takeFailedLines() -> Int {
        defer { failedLines = 0 }
        return failedLines
    }

    /// Writes the buffer until an error, or until it is too late.
    /// - Returns: the count of bytes written.
    private func write() -> Int {
        buffer.withUnsafeBytes { bytes in
            var start = 0
            while start < bytes.count {
                do throws(Errno) {
                    let remaining = UnsafeRawBufferPointer(rebasing: bytes[start...])
                    let count = try output.writeSome(remaining, waiting: isExpired ? 0 : 100)
                    start += count
                    if count > 0 { continue }
                    if isExpired { return start }
                    SystemClock.pause(nanoseconds: 1_000_000)
                } catch {
                    return start
                }
            }
            return start
        }
    }
}
