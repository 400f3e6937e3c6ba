import Glibc
import SystemCalls

/// Output for the user at the terminal.
enum Console {
    static func output(_ text: String) { LogOutput(descriptor: STDOUT_FILENO).write(text + "\n") }
    static func error(_ text: String) { LogOutput(descriptor: STDERR_FILENO).write(text + "\n") }

    /// Output of a server, which must start and stop even if nothing reads it. A write ends after five seconds
    /// without progress.
    enum Bounded {
        static func output(_ text: String) { LogOutput(descriptor: STDOUT_FILENO).write(text + "\n", waiting: 5000) }
        static func error(_ text: String) { LogOutput(descriptor: STDERR_FILENO).write(text + "\n", waiting: 5000) }
    }
}
