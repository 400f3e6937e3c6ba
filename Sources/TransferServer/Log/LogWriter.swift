import SystemCalls

/// Writes complete lines, several in one call, and never blocks in write(2). Use it from one thread.
///
/// A call writes at most ``LogOutput/atomicSize`` bytes, and only longer lines are split, so that lines do not mix on a
/// pipe that several processes share.
struct LogWriter {
    /// The number of lost lines that were not reported yet: lines that were dropped from the queue, or could not be
    /// written.
    var lost = 0
    private let output: LogOutput
    private let expired: () -> Bool
    private var failedLines = 0
    private var buffer: [UInt8] = []
    private var lines = 0
    /// Whether an error has left a line incomplete.
    private var isCut = false

    /// - Parameter expired: returns whether to stop waiting for the output.
    init(output: LogOutput, expired: @escaping () -> Bool) {
        self.output = output
        self.expired = expired
        buffer.reserveCapacity(LogOutput.atomicSize)
    }

    /// Whether lines that cannot be written immediately are lost.
    var isExpired: Bool { expired() }

    /// - Parameter line: a line without the newline at its end.
    mutating func append(_ line: String) {
        if buffer.count + line.utf8.count + 1 > LogOutput.atomicSize { flush() }
        buffer += line.utf8
        buffer.append(UInt8(ascii: "\n"))
        lines += 1
    }

    /// Writes the appended lines, waits for the output, and counts the lines that fail.
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

    /// Writes a line that reports ``lost``. If that fails, the count is kept for the next report.
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

    /// Returns the number of failed lines since the last call.
    mutating func takeFailedLines() -> Int {
        defer { failedLines = 0 }
        return failedLines
    }

    /// Writes the buffer until it is empty, an error occurs, or waiting must stop.
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
