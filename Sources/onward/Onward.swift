import CommandLineInterface
import Glibc
import SystemCalls

/// `onward`: transfers large files over HTTP and resumes after interruptions.
@main
enum Onward {
    static func main() {
        ProcessControl.blockSignals(ProcessControl.endSignals, evenIfIgnored: true)
        ProcessControl.occupyStandardDescriptors()
        let arguments = Array(CommandArgument.all.dropFirst())
        let status: ExitStatus
        switch arguments.first?.description {
        case nil:
            Console.error(HelpText(overview: manual).text)
            status = .usage
        case "help" where arguments.count > 1 && !["--help", "-h"].contains(arguments[1].description):
            status = help(Array(arguments.dropFirst()))
        case "help", "--help", "-h":
            Console.output(HelpText(overview: manual).text)
            status = .done
        case "version", "--version":
            status = printVersion(arguments.dropFirst().map(\.description))
        case "manual":
            do throws(OptionError) {
                // The text already ends with a line feed.
                Console.output(String(try manual.manual(arguments.dropFirst().map(\.description)).dropLast()))
                status = .done
            } catch {
                Console.error("onward manual: \(DisplayText.printable(error.message))\nSee 'onward manual --help'.")
                status = .usage
            }
        case .some(let other):
            if let command = commands.first(where: { $0.name == other }) {
                status = command.run(Array(arguments.dropFirst()))
            } else {
                status = unknown(other)
            }
        }
        exit(status.rawValue)
    }

    private static func printVersion(_ operands: [String]) -> ExitStatus {
        if let operand = operands.first(where: { !["--help", "-h"].contains($0) }) {
            Console.error("onward version: unexpected '\(DisplayText.printable(operand))'\nSee 'onward --help'.")
            return .usage
        }
        let help = "usage: onward version\n\nPrints the name of the program and its version."
        Console.output(operands.isEmpty ? "onward \(version)" : help)
        return .done
    }

    /// `onward help COMMAND`.
    private static func help(_ operands: [CommandArgument]) -> ExitStatus {
        guard operands.count == 1 else {
            Console.error(
                "onward help: unexpected '\(DisplayText.printable(operands[1].description))': help accepts one COMMAND\nSee 'onward --help'."
            )
            return .usage
        }
        let name = operands[0].description
        switch name {
        case "help": Console.output(HelpText(overview: manual).text)
        case "manual": Console.output(String(((try? manual.manual(["--help"])) ?? "").dropLast()))
        case "version": return printVersion(["--help"])
        default:
            guard let command = commands.first(where: { $0.name == name }) else { return unknown(name) }
            Console.output(HelpText(command.page, of: "onward").text)
        }
        return .done
    }

    private static func unknown(_ command: String) -> ExitStatus {
        let kind = command.hasPrefix("-") ? "option" : "command"
        Console.error("onward: there is no \(kind) '\(DisplayText.printable(command))'\nSee 'onward --help'.")
        return .usage
    }

    /// The commands in the order of help and manual page.
    static let commands = [
        Command("put", PutCommand.command.page) { PutCommand.run($0) },
        Command("get", GetCommand.command.page) { GetCommand.run($0) },
        Command("resume", ResumeCommand.command.page) { ResumeCommand.run($0) },
        Command("status", StatusCommand.command.page) { StatusCommand.run($0) },
        Command("cancel", CancelCommand.command.page) { CancelCommand.run($0) },
        Command("serve", ServeCommand.page) { ServeCommand.run($0) },
        Command("health", HealthCommand.command.page) { HealthCommand.run($0) },
        Command("check", CheckCommand.page) { CheckCommand.run($0) },
        Command("migrate", MigrateCommand.page) { MigrateCommand.run($0) },
        Command("outcomes", OutcomesCommand.page) { OutcomesCommand.run($0) },
        Command("events", EventsCommand.page) { EventsCommand.run($0) },
    ]

    /// One command. Its page, which has all options, is created only when it is needed.
    struct Command: Sendable {
        /// The name of the command, which is also the name of its page.
        let name: String
        let run: @Sendable ([CommandArgument]) -> ExitStatus
        private let makePage: @Sendable () -> ManualPage

        init(
            _ name: String, _ page: @autoclosure @escaping @Sendable () -> ManualPage,
            run: @escaping @Sendable ([CommandArgument]) -> ExitStatus
        ) {
            (self.name, self.run, makePage) = (name, run, page)
        }

        var page: ManualPage { makePage() }
    }
}

extension ManualPage {
    /// Runs the command of this page, or prints the page if the arguments request help.
    /// - Parameter body: parses the arguments, and does the work of the command.
    func run(_ arguments: [CommandArgument], _ body: () throws(OptionError) -> ExitStatus) -> ExitStatus {
        if arguments.contains("--help") || arguments.contains("-h") {
            Console.output(HelpText(self, of: "onward").text)
            return .done
        }
        do throws(OptionError) { return try body() } catch {
            Console.error("onward \(name): \(error.message)\nSee 'onward \(name) --help'.")
            return .usage
        }
    }
}

extension Onward {
    static let version = "0.2.0"

    /// The source of help, manual pages and completions.
    static let manual = ProgramManual(
        "onward", version: version, date: "2026-11-22", "transfer large files over HTTP and resume after interruptions",
        """
        Onward uploads and downloads large files over unreliable networks, and serves them.
        After an interruption (Ctrl-C, kill -9, a reboot) run the same command again to resume.
        It implements the IETF draft "Resumable Uploads for HTTP".
        """,
        commands: commands.map(\.page),
        conclusion: ManualSection(
            "Exit status",
            [.paragraph("Exit status of put, get, resume, status and cancel:")] + ClientManual.exitStatus.blocks),
        sections: [
            ClientManual.files,
            ManualSection(
                "Examples",
                [
                    .paragraph("Serve a directory on this machine; send a file there, and get it back:"),
                    .example(
                        """
                        onward serve --root ./onward-data
                        onward put big.bin http://127.0.0.1:8080/files/big.bin
                        onward get http://127.0.0.1:8080/files/big.bin -o copy.bin
                        """),
                ]),
        ])
}
