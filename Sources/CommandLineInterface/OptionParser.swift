/// Reads the options of a command, and applies them to its settings.
package struct OptionParser<Settings> {
    package let options: [CommandOption<Settings>]

    package init(options: [CommandOption<Settings>]) { self.options = options }

    /// Reads the environment variables, and then a command line without operands, which overrides them.
    package func parse(
        _ arguments: [CommandArgument], environment: [String: String], into settings: inout Settings
    ) throws(OptionError) {
        let named = Set(arguments.compactMap { $0.hasPrefix("--") ? Self.parts(of: $0, dashes: 2).name : nil })
        for option in options where !named.contains(option.name) {
            guard let value = environment[option.variable] else { continue }
            guard !value.isEmpty else { throw OptionError("\(option.variable) is empty; unset it, or give a value") }
            let values = option.manual.isRepeatable ? value.split(separator: " ").map(String.init) : [value]
            for value in values { try set(option, CommandArgument(value), as: option.variable, in: &settings) }
        }
        var remaining = arguments[...]
        var seen: Set<String> = []
        while let argument = remaining.popFirst() {
            guard argument.hasPrefix("--"), argument.bytes.count > 2 else {
                throw OptionError("unexpected '\(argument)': this command accepts only options")
            }
            try parseOption(argument, &remaining, &seen, into: &settings)
        }
    }

    /// Reads a command line and returns its operands. They can precede and follow options; after `--` everything is an
    /// operand. Environment variables are not read.
    package func operands(
        of arguments: [CommandArgument], into settings: inout Settings
    ) throws(OptionError) -> [CommandArgument] {
        var operands: [CommandArgument] = []
        var remaining = arguments[...]
        var seen: Set<String> = []
        while let argument = remaining.popFirst() {
            if argument == "--" { return operands + remaining }
            if argument.hasPrefix("-"), argument.bytes.count > 1 {
                try parseOption(argument, &remaining, &seen, into: &settings)
            } else {
                operands.append(argument)
            }
        }
        return operands
    }

    package func operands(
        of arguments: [String], into settings: inout Settings
    ) throws(OptionError) -> [String] {
        try operands(of: arguments.map { CommandArgument($0) }, into: &settings).map(\.description)
    }

    /// The name of an option without its dashes, and the text after the first "="; `nil` without "=".
    private static func parts(of argument: CommandArgument, dashes: Int) -> (name: String, value: CommandArgument?) {
        let parts = argument.bytes.dropFirst(dashes)
            .split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
        return (
            String(decoding: parts.first ?? [], as: UTF8.self),
            parts.count == 2 ? CommandArgument(Array(parts[1])) : nil
        )
    }

    /// Reads one option, and its value from `remaining` if no "=" follows the name.
    private func parseOption(
        _ argument: CommandArgument, _ remaining: inout ArraySlice<CommandArgument>, _ seen: inout Set<String>,
        into settings: inout Settings
    ) throws(OptionError) {
        let isLong = argument.hasPrefix("--")
        let (name, given) = Self.parts(of: argument, dashes: isLong ? 2 : 1)
        guard
            let option = options.first(where: {
                isLong ? $0.name == name : $0.manual.letter.map(String.init) ?? "" == name
            })
        else { throw OptionError("there is no option '\(isLong ? "--" : "-")\(name)'") }
        guard option.manual.isRepeatable || seen.insert(option.name).inserted else {
            throw OptionError("--\(option.name) is given twice")
        }
        if option.manual.argument == nil {
            guard given == nil else { throw OptionError("--\(option.name) accepts no value") }
            try set(option, "", as: "--" + option.name, in: &settings)
        } else if let given {
            try set(option, given, as: "--" + option.name, in: &settings)
        } else {
            guard let value = remaining.popFirst() else { throw OptionError("--\(option.name) needs a value") }
            try set(option, value, as: "--" + option.name, in: &settings)
        }
    }

    /// Returns the environment variables whose names begin with `ONWARD_`, but that belong to no option.
    package func unknownVariables(of environment: [String: String]) -> [String] {
        let known = Set(options.map(\.variable))
        return environment.keys.filter { $0.hasPrefix("ONWARD_") && !known.contains($0) }.sorted()
    }

    private func set(
        _ option: CommandOption<Settings>, _ value: CommandArgument, as name: String, in settings: inout Settings
    ) throws(OptionError) {
        do { try option.set(value, in: &settings) } catch { throw OptionError("\(name): \(error.message)") }
    }
}
