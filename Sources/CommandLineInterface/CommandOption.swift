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

    /// The environment variable of the option.
    var variable: String { "ONWARD_" + name.uppercased().replacing("-", with: "_") }

    package func set(_ value: CommandArgument, in settings: inout Settings) throws(OptionError) {
        try apply(&settings, value)
    }
}

/// An error in a command line, with a message for the user.
package struct OptionError: Error {
    package let message: String

    package init(_ message: String) { self.message = message }
}
