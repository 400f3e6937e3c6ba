/// Reads the environment, then the command line, which has the last word.
package struct OptionParser<Settings> {
    package let options: [CommandOption<Settings>]

    package init(options: [CommandOption<Settings>]) { self.options = options }

    /// Reads a command line that has nothing but options.
    package func parse(
        _ arguments: [String], environment: [String: String], into settings: inout Settings
    ) throws(OptionError) {
        let named = Set(
            arguments.compactMap { $0.hasPrefix("--") ? String($0.dropFirst(2).prefix { $0 != "=" }) : nil })
        for option in options where !named.contains(option.name) {
            guard let value = environment[option.variable] else { continue }
            let values = option.manual.isRepeatable ? value.split(separator: " ").map(String.init) : [value]
            for value in values { try set(option, value, as: option.variable, in: &settings) }
        }
        var rest = arguments[...]
        var seen: Set<String> = []
        while let argument = rest.popFirst() {
            guard argument.hasPrefix("--"), argument.count > 2 else { throw OptionError("unexpected '\(argument)'") }
            try take(argument, &rest, &seen, into: &settings)
        }
    }

    /// Reads a command line with operands, before, between and behind its options; all behind `--` are operands.
    package func operands(
        of arguments: [String], into settings: inout Settings
    ) throws(OptionError) -> [String] {
        var operands: [String] = []
        var rest = arguments[...]
        var seen: Set<String> = []
        while let argument = rest.popFirst() {
            if argument == "--" { return operands + rest }
            if argument.hasPrefix("-"), argument.count > 1 {
                try take(argument, &rest, &seen, into: &settings)
            } else {
                operands.append(argument)
            }
        }
        return operands
    }

    /// Takes one option, and its value from `rest` where it does not stand behind a "=".
    private func take(
        _ argument: String, _ rest: inout ArraySlice<String>, _ seen: inout Set<String>, into settings: inout Settings
    ) throws(OptionError) {
        let isLong = argument.hasPrefix("--")
        let parts = argument.dropFirst(isLong ? 2 : 1)
            .split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        let name = parts.first ?? ""
        guard
            let option = options.first(where: {
                isLong ? $0.name == name : $0.manual.letter.map(String.init) ?? "" == name
            })
        else { throw OptionError("there is no option '\(isLong ? "--" : "-")\(name)'") }
        guard option.manual.isRepeatable || seen.insert(option.name).inserted else {
            throw OptionError("--\(option.name) is given twice")
        }
        if option.manual.argument == nil {
            guard parts.count == 1 else { throw OptionError("--\(option.name) takes no value") }
            try set(option, "", as: "--" + option.name, in: &settings)
        } else if parts.count == 2 {
            try set(option, String(parts[1]), as: "--" + option.name, in: &settings)
        } else {
            guard let value = rest.popFirst() else { throw OptionError("--\(option.name) needs a value") }
            try set(option, value, as: "--" + option.name, in: &settings)
        }
    }

    /// Variables that look as if they were options of Onward, and are none.
    package func unknownVariables(of environment: [String: String]) -> [String] {
        let known = Set(options.map(\.variable))
        return environment.keys.filter { $0.hasPrefix("ONWARD_") && !known.contains($0) }.sorted()
    }

    private func set(
        _ option: CommandOption<Settings>, _ value: String, as name: String, in settings: inout Settings
    ) throws(OptionError) {
        do { try option.set(value, in: &settings) } catch { throw OptionError("\(name): \(error.message)") }
    }
}
