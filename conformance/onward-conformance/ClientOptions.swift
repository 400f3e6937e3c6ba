import CommandLineInterface
import ConformanceKit

/// The options of `onward-conformance client`, and their values.
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
                "shell command that downloads {url} to {file}; --command or\n--get-command is needed"
            ) { options, value throws(OptionError) in options.settings.downloadCommand = try command(value) },
            CommandOption(
                "runs-again-on", "N", group: "Client",
                "exit status with which a command requests another run\n[default: 75]"
            ) { options, value throws(OptionError) in
                options.settings.runsAgainOn = Int32(try number(value, 0...255))
            },
            CommandOption(
                "runs", "N", group: "Client", "maximum number of runs in one scenario [default: 3]"
            ) { options, value throws(OptionError) in options.settings.maxRuns = try number(value, 1...100) },
            CommandOption(
                "timeout", "SECONDS", group: "Client", "maximum total time of the runs in one scenario [default: 60]"
            ) { options, value throws(OptionError) in
                options.settings.timeout = .seconds(try number(value, 1...3600))
            },

            CommandOption(
                "client-kind", "KIND", group: "Cases", values: .words(ClientKind.allCases.map(\.rawValue)),
                "kind of the client; the only value is browser, for a page in a\nbrowser. Cases that no browser can pass are skipped if they fail"
            ) { options, value throws(OptionError) in
                guard let kind = ClientKind(rawValue: value) else {
                    throw OptionError("'\(value)' is not a kind of client: use browser")
                }
                options.settings.kind = kind
            },
            CommandOption(
                "only", "GLOB", group: "Cases", repeatable: true,
                "run only cases whose ID matches, such as '4.4/*', or '14/*' for\ndownloads; repeatable"
            ) { options, value throws(OptionError) in options.settings.only.append(value) },
            CommandOption("jobs", "N", group: "Cases", "number of scenarios that run at the same time [default: 4]") {
                options, value throws(OptionError) in options.settings.jobs = try number(value, 1...64)
            },
            CommandOption("seed", "N", group: "Cases", "seed of the random offsets of interruptions [default: 1]") {
                options, value throws(OptionError) in options.settings.seed = UInt64(try number(value, 0...Int.max))
            },
        ] + Reporting.options(\.reporting)

    /// - Throws: a description of the error in the command line.
    static func parse(_ arguments: [String]) throws(OptionError) -> ClientOptions {
        var options = ClientOptions()
        let operands = try OptionParser(options: table).operands(of: arguments, into: &options)
        if let operand = operands.first { throw OptionError("unexpected '\(operand)'") }
        if options.settings.uploadCommand == nil && options.settings.downloadCommand == nil {
            throw OptionError("--command or --get-command is missing")
        }
        return options
    }

    private static func command(_ text: String) throws(OptionError) -> String {
        for word in ["{file}", "{url}"] where !text.contains(word) {
            throw OptionError("'\(text)' does not contain \(word)")
        }
        return text
    }

    private static func number(_ text: String, _ range: ClosedRange<Int>) throws(OptionError) -> Int {
        guard let number = Int(text), range.contains(number) else {
            throw OptionError("'\(text)' is not a number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }
}
