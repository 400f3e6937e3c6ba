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
