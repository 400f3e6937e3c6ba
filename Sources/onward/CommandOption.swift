/// One option of a command: how it is written, explained, and what it does to the command's settings.
struct CommandOption<Settings>: Sendable {
    /// Without the dashes.
    let name: String
    /// A short form with one dash.
    let letter: Character?
    /// What stands for its value in the help; `nil` for one that takes none.
    let argument: String?
    /// The group of the help under which it stands.
    let group: String
    let help: String
    let isRepeatable: Bool
    private let apply: @Sendable (inout Settings, String) throws(OptionError) -> Void

    /// An option with a value.
    init(
        _ name: String, letter: Character? = nil, _ argument: String, group: String, repeatable: Bool = false,
        _ help: String, apply: @escaping @Sendable (inout Settings, String) throws(OptionError) -> Void
    ) {
        self.name = name
        self.letter = letter
        self.argument = argument
        self.group = group
        self.help = help
        isRepeatable = repeatable
        self.apply = apply
    }

    /// An option that turns something on.
    init(flag name: String, group: String, _ help: String, apply: @escaping @Sendable (inout Settings) -> Void) {
        self.name = name
        letter = nil
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
