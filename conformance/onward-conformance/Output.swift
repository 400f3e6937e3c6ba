import SystemCalls

/// Standard output. After the first error, or after ``stop()``, nothing more is written to it.
enum Output {
    /// The exit status EX_IOERR of sysexits.h. It differs from the statuses that report a verdict.
    private static let inputOutput: Int32 = 74

    private static let failure = Monitor<Errno?>(nil)
    private static let isStopped = Monitor(false)

    /// Suppresses all further output.
    static func stop() { isStopped.withLock { $0 = true } }

    /// - Returns: whether this text and all previous ones were written.
    @discardableResult
    static func write(_ text: String) -> Bool {
        if isStopped.withLock({ $0 }) { return false }
        return failure.withLock { failure in
            if failure != nil { return false }
            do throws(Errno) {
                try LogOutput(descriptor: 1).writeOrThrow(text)
                return true
            } catch {
                failure = error
                return false
            }
        }
    }

    /// Writes a message to standard error; errors are ignored.
    /// - Parameter command: the command that failed; `nil` for the program.
    static func printError(_ reason: String, of command: String? = nil) {
        LogOutput().write("onward-conformance\(command.map { " " + $0 } ?? ""): \(reason)\n")
    }

    /// Returns the exit status of the program: `status` if everything was written. If the reader of standard output has
    /// closed the pipe, the program ends by SIGPIPE, without a message.
    static func status(_ status: Int32) -> Int32 {
        switch failure.withLock({ $0 }) {
        case nil: return status
        case .brokenPipe?: ProcessControl.endByBrokenPipe()
        case let failure?:
            printError("standard output cannot be written: \(failure)")
            return inputOutput
        }
    }
}
