/// One option of a command: how it is written, explained, and what it does to the command's settings.
struct CommandOption<Settings>: Sendable {
    /// Without the dashes.
    let name: String
    /// What stands for its value in the help; `nil` for one that takes none.
    let argument: String?
    /// The group of the help under which it stands.
    let group: String
    let help: String
    let isRepeatable: Bool
    private let apply: @Sendable (inout Settings, String) throws(OptionError) -> Void

    /// An option with a value.
    init(
        _ name: String, _ argument: String, group: String, repeatable: Bool = false, _ help: String,
        apply: @escaping @Sendable (inout Settings, String) throws(OptionError) -> Void
    ) {
        self.name = name
        self.argument = argument
        self.group = group
        self.help = help
        isRepeatable = repeatable
        self.apply = apply
    }

    /// An option that turns something on.
    init(flag name: String, group: String, _ help: String, apply: @escaping @Sendable (inout Settings) -> Void) {
        self.name = name
        argument = nil
        self.group = group
        self.help = help
        isRepeatable = false
        self.apply = { settings, value throws(OptionError) in
            switch value.lowercased() {
            case "", "1", "true", "yes", "on": apply(&settings)
            case "0", "false", "no", "off": break
            default: throw OptionError("takes no value, or on or off in the environment")
            }
        }
    }

    /// The variable of the environment that stands for it.
    var variable: String { "ONWARD_" + name.uppercased().replacing("-", with: "_") }

    func set(_ value: String, in settings: inout Settings) throws(OptionError) { try apply(&settings, value) }
}

/// What is wrong with a command line, in words for the person who wrote it.
struct OptionError: Error {
    let message: String

    init(_ message: String) { self.message = message }
}

/// Reads the environment, then the command line, which has the last word.
struct OptionParser<Settings> {
    let options: [CommandOption<Settings>]

    func parse(_ arguments: [String], environment: [String: String], into settings: inout Settings) throws(OptionError)
    {
        let named = Set(
            arguments.compactMap { $0.hasPrefix("--") ? String($0.dropFirst(2).prefix { $0 != "=" }) : nil })
        for option in options where !named.contains(option.name) {
            guard let value = environment[option.variable] else { continue }
            let values = option.isRepeatable ? value.split(separator: " ").map(String.init) : [value]
            for value in values { try set(option, value, as: option.variable, in: &settings) }
        }
        var rest = arguments[...]
        var seen: Set<String> = []
        while let argument = rest.popFirst() {
            guard argument.hasPrefix("--"), argument.count > 2 else { throw OptionError("unexpected '\(argument)'") }
            let parts = argument.dropFirst(2).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let option = options.first(where: { $0.name == parts[0] }) else {
                throw OptionError("there is no option '--\(parts[0])'")
            }
            guard option.isRepeatable || seen.insert(option.name).inserted else {
                throw OptionError("--\(option.name) is given twice")
            }
            if option.argument == nil {
                guard parts.count == 1 else { throw OptionError("--\(option.name) takes no value") }
                try set(option, "", as: "--" + option.name, in: &settings)
            } else if parts.count == 2 {
                try set(option, String(parts[1]), as: "--" + option.name, in: &settings)
            } else {
                guard let value = rest.popFirst() else { throw OptionError("--\(option.name) needs a value") }
                try set(option, value, as: "--" + option.name, in: &settings)
            }
        }
    }

    /// Variables that look as if they were options of Onward, and are none.
    func unknownVariables(of environment: [String: String]) -> [String] {
        let known = Set(options.map(\.variable))
        return environment.keys.filter { $0.hasPrefix("ONWARD_") && !known.contains($0) }.sorted()
    }

    private func set(
        _ option: CommandOption<Settings>, _ value: String, as name: String, in settings: inout Settings
    ) throws(OptionError) {
        do { try option.set(value, in: &settings) } catch { throw OptionError("\(name): \(error.message)") }
    }

    /// The options by group, as a manual would show them.
    func help() -> String {
        var text = ""
        var group = ""
        for option in options {
            if option.group != group {
                group = option.group
                text += "\n\(group):\n"
            }
            let head = "  --\(option.name)" + (option.argument.map { " " + $0 } ?? "")
            text += head.count < 30 ? head + String(repeating: " ", count: 30 - head.count) : head + "\n" + indent
            text += option.help.replacing("\n", with: "\n" + indent) + "\n"
        }
        return text
    }

    private var indent: String { String(repeating: " ", count: 30) }
}
