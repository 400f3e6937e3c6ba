/// A program with its commands: everything that is said about how it is used, once, for `--help`, manual and completions.
package struct ProgramManual: Sendable {
    package let name: String
    package let version: String
    /// When this version was made, as YYYY-MM-DD.
    package let date: String
    package let summary: String
    package let description: String
    package let commands: [ManualPage]
    /// What the overview has at its end, in help and manual.
    package let conclusion: ManualSection
    /// What only the manual has.
    package let sections: [ManualSection]

    package init(
        _ name: String, version: String, date: String, _ summary: String, _ description: String,
        commands: [ManualPage], conclusion: ManualSection, sections: [ManualSection] = []
    ) {
        self.name = name
        self.version = version
        self.date = date
        self.summary = summary
        self.description = description
        self.commands = commands
        self.conclusion = conclusion
        self.sections = sections
    }

    /// What an installation puts below `share`: paths there, and contents.
    package var files: [(path: String, text: String)] {
        let pages = [RoffPage(overview: self)] + commands.map { RoffPage($0, of: self) }
        return pages.map { ("man/man1/\($0.name).1", $0.text) } + [
            ("bash-completion/completions/\(name)", BashCompletion(self).text),
            ("zsh/site-functions/_\(name)", ZshCompletion(self).text),
            ("fish/vendor_completions.d/\(name).fish", FishCompletion(self).text),
        ]
    }

    /// What the command `manual`, which no help shows, prints: without operands the paths of ``files``, otherwise the
    /// contents of the one that is named.
    /// - Returns: `nil` for operands that are wrong.
    package func manual(_ operands: [String]) -> String? {
        switch operands.count {
        case 0: files.map { $0.path + "\n" }.joined()
        case 1: files.first { $0.path == operands[0] }?.text
        default: nil
        }
    }
}
