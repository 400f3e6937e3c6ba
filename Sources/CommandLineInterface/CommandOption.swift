/// One option of a command: its name and explanation, and how it changes the settings of the command.
package struct CommandOption<Settings>: Sendable {
    package let manual: ManualOption
    private let apply: @Sendable (inout Settings, CommandArgument) throws(OptionError) -> Void

    /// An option with a value.
    package init(
        _ name: String, letter: Character? = nil, _ argument: String, group: String, repeatable: Bool = false,
        values: Completion? = nil, _ help: String,
        apply: @escaping @Sendable (inout Settings, String) throws(OptionError) -> Void
    ) {
        manual = ManualOption(
            name: name, letter: letter, argument: argument, group: group, help: help, isRepeatable: repeatable,
            values: values ?? Completion(placeholder: argument))
        self.apply = { settings, value throws(OptionError) in try apply(&settings, try value.requireText()) }
    }

    /// An option with a value of any bytes, such as the name of a file.
    package init(
        path name: String, letter: Character? = nil, _ argument: String, group: String, _ help: String,
        apply: @escaping @Sendable (inout Settings, CommandArgument) throws(OptionError) -> Void
    ) {
        manual = ManualOption(
            name: name, letter: letter, argument: argument, group: group, help: help, isRepeatable: false,
            values: Completion(placeholder: argument))
        self.apply = apply
    }

    /// An option without a value.
    package init(
        flag name: String, letter: Character? = nil, group: String, _ help: String,
        apply: @escaping @Sendable (inout Settings) -> Void
    ) {
        manual = ManualOption(
            name: name, letter: letter, argument: nil, group: group, help: help, isRepeatable: false, values: .nothing)
        self.apply = { settings, value throws(OptionError) in
            switch value.description.lowercased() {
            case "", "1", "true", "yes", "on": apply(&settings)
            case "0", "false", "no", "off": break
            // The parser rejects values on the command line.
            default: throw OptionError("'\(value)' is neither on nor off")
            }
        }
    }

    package var name: String { manual.name }

    /// The environment variable of the option.
    package var variable: String { "ONWARD_" + name.uppercased().replacing("-", with: "_") }

    package func set(_ value: CommandArgument, in settings: inout Settings) throws(OptionError) {
        try apply(&settings, value)
    }
}

/// An error in a command line, with a message for the user.
package struct OptionError: Error {
    package let message: String

    package init(_ message: String) { self.message = message }
}

/// The completions that a shell can offer for a value.
package enum Completion: Sendable, Hashable {
    case nothing
    case files
    case directories
    case words([String])
    /// The lines that a shell command (POSIX) prints.
    case lines(String)

    /// Chooses the completion by the placeholder of the value.
    init(placeholder: String) {
        switch placeholder {
        case "FILE", "F": self = .files
        case "DIR": self = .directories
        default: self = .nothing
        }
    }
}

/// One word of a command line as the system passed it: bytes, which need not be UTF-8.
package struct CommandArgument: Sendable, Hashable {
    package let bytes: [UInt8]

    package init(_ bytes: [UInt8]) { self.bytes = bytes }

    package init(_ text: String) { bytes = Array(text.utf8) }

    /// The arguments of this process. `CommandLine.arguments` would replace bytes that are not UTF-8.
    package static var all: [CommandArgument] {
        let count = Int(CommandLine.argc)
        return UnsafeBufferPointer(start: CommandLine.unsafeArgv, count: count).compactMap { word in
            guard let word else { return nil }
            var bytes: [UInt8] = []
            var next = word
            while next.pointee != 0 {
                bytes.append(UInt8(bitPattern: next.pointee))
                next += 1
            }
            return CommandArgument(bytes)
        }
    }

    /// The bytes as a string; `nil` if they are not UTF-8.
    package var text: String? { String(validating: bytes, as: UTF8.self) }

    package var isEmpty: Bool { bytes.isEmpty }

    func hasPrefix(_ prefix: String) -> Bool { bytes.starts(with: prefix.utf8) }

    /// - Throws: `OptionError` if it is not UTF-8.
    package func requireText() throws(OptionError) -> String {
        guard let text else { throw OptionError("'\(self)' is not UTF-8") }
        return text
    }
}

extension CommandArgument: ExpressibleByStringLiteral {
    package init(stringLiteral text: String) { self.init(text) }
}

extension CommandArgument: CustomStringConvertible {
    /// The text for messages, with U+FFFD in place of bytes that are not UTF-8.
    package var description: String { String(decoding: bytes, as: UTF8.self) }
}

/// Reads the options of a command, and applies them to its settings.
package struct OptionParser<Settings> {
    package let options: [CommandOption<Settings>]

    package init(options: [CommandOption<Settings>]) { self.options = options }

    /// Reads the environment variables, and then a command line without operands, which overrides them.
    package func parse(
        _ arguments: [CommandArgument], environment: [String: String], into settings: inout Settings
    ) throws(OptionError) {
        try readVariables(environment, except: Self.names(in: arguments), into: &settings)
        var remaining = arguments[...]
        var seen: Set<String> = []
        while let argument = remaining.popFirst() {
            guard argument.hasPrefix("--"), argument.bytes.count > 2 else {
                throw OptionError("unexpected '\(argument)': this command accepts only options")
            }
            try parseOption(argument, &remaining, &seen, into: &settings)
        }
    }

    /// Reads the environment variables, and then a command line, which overrides them, and returns its operands.
    /// Operands can precede and follow options; after `--` everything is an operand.
    package func operands(
        of arguments: [CommandArgument], environment: [String: String] = [:], into settings: inout Settings
    ) throws(OptionError) -> [CommandArgument] {
        try readVariables(environment, except: Self.names(in: arguments), into: &settings)
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

    /// The names of the options in a command line.
    package static func names(in arguments: [CommandArgument]) -> Set<String> {
        Set(arguments.compactMap { $0.hasPrefix("--") ? parts(of: $0, dashes: 2).name : nil })
    }

    private func readVariables(
        _ environment: [String: String], except named: Set<String>, into settings: inout Settings
    ) throws(OptionError) {
        for option in options where !named.contains(option.name) {
            guard let value = environment[option.variable] else { continue }
            guard !value.isEmpty else { throw OptionError("\(option.variable) is empty; unset it, or give a value") }
            let values = option.manual.isRepeatable ? value.split(separator: " ").map(String.init) : [value]
            for value in values { try set(option, CommandArgument(value), as: option.variable, in: &settings) }
        }
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
