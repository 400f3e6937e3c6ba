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
        case "check": status = CheckCommand.run(Array(arguments.dropFirst()))
        case "put": status = PutCommand.run(Array(arguments.dropFirst()))
        case "get": status = GetCommand.run(Array(arguments.dropFirst()))
        case "resume": status = ResumeCommand.run(Array(arguments.dropFirst()))
        case "status": status = StatusCommand.run(Array(arguments.dropFirst()))
        case "cancel": status = CancelCommand.run(Array(arguments.dropFirst()))
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
            Console.error("onward: there is no command '\(DisplayText.printable(other))'\nSee 'onward --help'.")
            status = .usage
        }
        exit(status.rawValue)
    }

    static let version = "0.1.0"

    private static let usage = """
        usage: onward put FILE... URL    upload; a URL that ends in / is a collection
               onward get URL [-o FILE]  download
               onward resume [STATE]     go on with what was interrupted
               onward status             what is interrupted, and how far it is
               onward cancel STATE       forget it, and delete it on the server
               onward serve              serve resumable uploads and Range downloads
               onward check              verify the data directory of a server that is stopped
               onward version

        Run the same command again and it goes on where it stopped. What put, get, resume,
        status and cancel end with:

          0   done
          64  wrong usage
          65  the source has changed since its upload began
          66  no such source, or it cannot be opened; no such state
          69  the server refused for good or lost what it had, or there is no such host
          70  our fault
          74  local input or output
          75  not done for now: the same command goes on, or begins anew where nothing is
              kept; or it is running already
          77  the server does not allow it

        'onward COMMAND --help' lists the options.
        """
}
