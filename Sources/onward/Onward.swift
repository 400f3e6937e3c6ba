import Glibc
import SystemCalls

/// `onward`: moves big files over HTTP without ever starting again.
@main
enum Onward {
    static func main() {
        ProcessControl.holdEndSignals()
        let arguments = Array(CommandLine.arguments.dropFirst())
        let status: ExitStatus
        switch arguments.first {
        case "serve":
            status = ServeCommand.run(Array(arguments.dropFirst()))
        case nil:
            Console.error(usage)
            status = .usage
        case "help", "--help", "-h":
            Console.output(usage)
            status = .done
        case "version", "--version":
            Console.output("onward \(version)")
            status = .done
        case .some(let other):
            Console.error("onward: there is no command '\(other)'\n\n" + usage)
            status = .usage
        }
        exit(status.rawValue)
    }

    static let version = "0.1.0"

    private static let usage = """
        usage: onward serve [OPTIONS]    serve resumable uploads and Range downloads
               onward serve --help       the options
               onward version
        """
}

/// Exit statuses, as sysexits.h has them.
enum ExitStatus: Int32 {
    case done = 0
    case usage = 64
    case addressBusy = 69
    case dataUnusable = 74
    case dataInUse = 75
}

/// Lines for the person at the terminal.
enum Console {
    static func output(_ text: String) { LogOutput(descriptor: STDOUT_FILENO).write(text + "\n") }
    static func error(_ text: String) { LogOutput(descriptor: STDERR_FILENO).write(text + "\n") }
}
