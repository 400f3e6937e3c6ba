import CommandLineInterface
import Glibc
import SystemCalls

/// `onward`: moves big files over HTTP without ever starting again.
@main
enum Onward {
    static func main() {
        ProcessControl.blockEndSignals()
        ProcessControl.occupyStandardDescriptors()
        let arguments = Array(CommandArgument.all.dropFirst())
        let status: ExitStatus
        switch arguments.first?.description {
        case nil:
            Console.error(HelpText(overview: manual).text)
            status = .usage
        case "help" where arguments.count > 1:
            status = help(Array(arguments.dropFirst()))
        case "help", "--help", "-h":
            Console.output(HelpText(overview: manual).text)
            status = .done
        case "version", "--version":
            Console.output("onward \(version)")
            status = .done
        case "manual":
            guard let text = manual.manual(arguments.dropFirst().map(\.description)) else {
                Console.error("onward manual: there is no such file")
                exit(ExitStatus.usage.rawValue)
            }
            // The text already ends with a line feed.
            Console.output(String(text.dropLast()))
            status = .done
        case .some(let other):
            if let command = commands.first(where: { $0.page.name == other }) {
                status = command.run(Array(arguments.dropFirst()))
            } else {
                status = unknown(other)
            }
        }
        exit(status.rawValue)
    }

    /// `onward help COMMAND`.
    private static func help(_ operands: [CommandArgument]) -> ExitStatus {
        guard operands.count == 1 else {
            Console.error(
                "onward help: unexpected '\(DisplayText.printable(operands[1].description))'; one COMMAND is explained\nSee 'onward --help'."
            )
            return .usage
        }
        guard let command = commands.first(where: { $0.page.name == operands[0].description }) else {
            return unknown(operands[0].description)
        }
        Console.output(HelpText(command.page, of: "onward").text)
        return .done
    }

    private static func unknown(_ command: String) -> ExitStatus {
        Console.error("onward: there is no command '\(DisplayText.printable(command))'\nSee 'onward --help'.")
        return .usage
    }

    /// The commands in the order of help and manual page.
    static let commands: [(page: ManualPage, run: @Sendable ([CommandArgument]) -> ExitStatus)] = [
        (PutCommand.command.page, { PutCommand.run($0) }),
        (GetCommand.command.page, { GetCommand.run($0) }),
        (ResumeCommand.command.page, { ResumeCommand.run($0) }),
        (StatusCommand.command.page, { StatusCommand.run($0) }),
        (CancelCommand.command.page, { CancelCommand.run($0) }),
        (ServeCommand.page, { ServeCommand.run($0) }),
        (HealthCommand.command.page, { HealthCommand.run($0) }),
        (CheckCommand.page, { CheckCommand.run($0) }),
    ]
}
