import SystemCalls

/// Standard output, whose reader may have gone, and whose disk may be full: then nothing more is written.
enum Output {
    /// Another status than those of a verdict, as sysexits.h has it.
    private static let inputOutput: Int32 = 74

    private static let failure = Monitor<Errno?>(nil)

    /// - Returns: whether it was written, and all before it.
    @discardableResult
    static func write(_ text: String) -> Bool {
        failure.withLock { failure in
            if failure != nil { return false }
            do throws(Errno) {
                try LogOutput(descriptor: 1).deliver(text)
                return true
            } catch {
                failure = error
                return false
            }
        }
    }

    /// For the person, who may have closed that as well.
    static func complain(_ reason: String) { LogOutput().write("onward-conformance: \(reason)\n") }

    /// What the program ends with: `status` where everything was written. Who closes a pipe has seen enough, and gets no
    /// report of an error.
    static func status(_ status: Int32) -> Int32 {
        switch failure.withLock({ $0 }) {
        case nil: return status
        case .brokenPipe?: ProcessControl.endByBrokenPipe()
        case let failure?:
            complain("standard output cannot be written: \(failure)")
            return inputOutput
        }
    }
}
