/// One option of a command: how it is written and explained, and what it does to the command's settings.
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

    /// An option with a value of any bytes, such as a file's name.
    package init(
        path name: String, letter: Character? = nil, _ argument: String, group: String, _ help: String,
        apply: @escaping @Sendable (inout Settings, CommandArgument) throws(OptionError) -> Void
    ) {
        manual = ManualOption(
            name: name, letter: letter, argument: argument, group: group, help: help, isRepeatable: false,
            values: Completion(placeholder: argument))
        self.apply = apply
    }

    /// An option that turns something on.
    package init(
        flag name: String, group: String, _ help: String, apply: @escaping @Sendable (inout Settings) -> Void
    ) {
        manual = ManualOption(
            name: name, letter: nil, argument: nil, group: group, help: help, isRepeatable: false, values: .nothing)
        self.apply = { settings, value throws(OptionError) in
            switch value.description.lowercased() {
            case "", "1", "true", "yes", "on": apply(&settings)
            case "0", "false", "no", "off": break
            default: throw OptionError("takes no value, or on or off in the environment")
            }
        }
    }

    package var name: String { manual.name }

    /// The variable of the environment that stands for it.
    var variable: String { "ONWARD_" + name.uppercased().replacing("-", with: "_") }

    package func set(_ value: CommandArgument, in settings: inout Settings) throws(OptionError) {
        try apply(&settings, value)
    }
}

/// What is wrong with a command line, in words for the person who wrote it.
package struct OptionError: Error {
    package let message: String

    package init(_ message: String) { self.message = message }
}
