/// One option, as shown in help, manual pages and completions.
package struct ManualOption: Sendable, Hashable {
    /// The long name without dashes.
    package let name: String
    /// The letter of the short form; `nil` if there is none.
    package let letter: Character?
    /// The placeholder of its value; `nil` if the option has no value.
    package let argument: String?
    /// The title of its group.
    package let group: String
    /// The explanation in one or more lines of at most 70 characters.
    package let help: String
    package let isRepeatable: Bool
    package let values: Completion

    /// The explanation in one line.
    package var line: String { help.replacing("\n", with: " ") }
}
