import Glibc
import SystemCalls

/// Lines for the person at the terminal.
enum Console {
    static func output(_ text: String) { LogOutput(descriptor: STDOUT_FILENO).write(text + "\n") }
    static func error(_ text: String) { LogOutput(descriptor: STDERR_FILENO).write(text + "\n") }

    /// Lines of a server, which has to start and end even if nothing reads them: gives up after five seconds without room.
    enum Bounded {
        static func output(_ text: String) { LogOutput(descriptor: STDOUT_FILENO).write(text + "\n", waiting: 5000) }
        static func error(_ text: String) { LogOutput(descriptor: STDERR_FILENO).write(text + "\n", waiting: 5000) }
    }
}
