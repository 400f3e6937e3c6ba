import Glibc
import SystemCalls

/// Lines for the person at the terminal.
enum Console {
    static func output(_ text: String) { LogOutput(descriptor: STDOUT_FILENO).write(text + "\n") }
    static func error(_ text: String) { LogOutput(descriptor: STDERR_FILENO).write(text + "\n") }
}
