import SystemCalls

/// The destination of the log lines of a server.
public struct LogSink: Sendable {
    enum Kind: Sendable {
        case none
        case lines(@Sendable (String) -> Void)
        case output(LogOutput)
    }

    let kind: Kind

    /// Nothing is logged.
    public static let none = LogSink(kind: .none)

    /// Standard error of the process. If its reader accepts nothing, lines are dropped and counted; the server does not
    /// wait.
    public static let standardError = LogSink(kind: .output(LogOutput()))

    /// Calls `receive` with each line, without the newline at its end, on one thread of the server. While `receive`
    /// runs, further lines wait in a queue of 1024 lines and 1 MiB; those that do not fit are dropped, and a later line
    /// reports their count.
    public static func lines(_ receive: @escaping @Sendable (String) -> Void) -> LogSink {
        LogSink(kind: .lines(receive))
    }
}
