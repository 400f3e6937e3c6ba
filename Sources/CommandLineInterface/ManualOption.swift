/// One option as help, manual and completions show it.
package struct ManualOption: Sendable, Hashable {
    /// Without the dashes.
    package let name: String
    /// A short form with one dash.
    package let letter: Character?
    /// What stands for its value; `nil` for one that takes none.
    package let argument: String?
    /// The group under which it stands.
    package let group: String
    /// One or more lines, of 70 characters at most.
    package let help: String
    package let isRepeatable: Bool
    package let values: Completion

    /// The explanation in one line.
    package var line: String { help.replacing("\n", with: " ") }
}
