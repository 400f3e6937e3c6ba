/// Exit statuses, as sysexits.h has them.
enum ExitStatus: Int32, Sendable {
    case done = 0
    /// The command line is wrong.
    case usage = 64
    /// The source changed since its upload was paused.
    case sourceChanged = 65
    /// There is no such source.
    case noSource = 66
    /// The server refuses, cannot be used, or has lost what it had; of `serve`: the address is busy.
    case unavailable = 69
    /// Our fault.
    case internalFailure = 70
    /// Of `serve`: the system refuses what the server needs, such as a thread.
    case systemRefusal = 71
    /// Local input or output; of `serve`: the data directory cannot be used.
    case inputOutput = 74
    /// Interrupted: the same command goes on; of `serve`: the data directory is in use.
    case tryAgain = 75
    case notAllowed = 77
}
