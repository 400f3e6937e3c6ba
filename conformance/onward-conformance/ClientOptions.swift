import CommandLineInterface
import ConformanceKit

/// What `onward-conformance client` was reported, and the options that report it.
struct ClientOptions: Sendable {
    var settings = ClientSettings()
    var reporting = Reporting()

    static let table: [CommandOption<ClientOptions>] =
        [
            CommandOption("command", "CMD", group: "Client", "shell command that uploads {file} to {url}") {
                options, value throws(OptionError) in options.settings.uploadCommand = try command(value)
            },
            CommandOption(
                "get-command", "CMD", group: "Client",
                "shell command that downloads {url} to {file}; one of the two\ncommands is needed"
            ) { options, value throws(OptionError) in options.settings.downloadCommand = try command(value) },
            CommandOption(
                "runs-again-on", "N", group: "Client",
                "exit status that means that the command has to be run again (75)"
            ) { options, value throws(OptionError) in
                options.settings.runsAgainOn = Int32(try number(value, 0...255))
            },
            CommandOption(
                "runs", "N", group: "Client", "maximum number of runs in one scenario (3)"
            ) { options, value throws(OptionError) in options.settings.mostRuns = try number(value, 1...100) },
            CommandOption(
                "timeout", "SECONDS", group: "Client", "maximum time of a run in one scenario (60)"
            ) { options, value throws(OptionError) in
                options.settings.timeout = .seconds(try number(value, 1...3600))
            },

            CommandOption(
                "only", "GLOB", group: "Cases", repeatable: true,
                "only cases whose ID matches, such as '4.4/*' ('14/*' are the\ndownloads); repeatable"
            ) { options, value throws(OptionError) in options.settings.only.append(value) },
            CommandOption("jobs", "N", group: "Cases", "number of scenarios that run at once (4)") {
                options, value throws(OptionError) in options.settings.jobs = try number(value, 1...64)
            },
            CommandOption("seed", "N", group: "Cases", "seed of the random positions of interruptions (1)") {
                options, value throws(OptionError) in options.settings.seed = UInt64(try number(value, 0...Int.max))
            },
        ] + Reporting.options(\.reporting)

    /// - Throws: what is wrong with the command line.
    static func parse(_ arguments: [String]) throws(OptionError) -> ClientOptions {
        var options = ClientOptions()
        let operands = try OptionParser(options: table).operands(of: arguments, into: &options)
        if let operand = operands.first { throw OptionError("client takes no “\(operand)”") }
        if options.settings.uploadCommand == nil && options.settings.downloadCommand == nil {
            throw OptionError("--command is missing, or --get-command")
        }
        return options
    }

    private static func command(_ text: String) throws(OptionError) -> String {
        for word in ["{file}", "{url}"] where !text.contains(word) { throw OptionError("“\(text)” has no \(word)") }
        return text
    }

    private static func number(_ text: String, _ range: ClosedRange<Int>) throws(OptionError) -> Int {
        guard let number = Int(text), range.contains(number) else {
            throw OptionError("“\(text)” is no number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }
}
