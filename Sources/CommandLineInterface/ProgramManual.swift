/// A program with its commands: the one source of `--help`, manual pages and completions.
package struct ProgramManual: Sendable {
    package let name: String
    package let version: String
    /// The date of this version as YYYY-MM-DD.
    package let date: String
    package let summary: String
    package let description: String
    package let commands: [ManualPage]
    /// The last section of the overview, in help and manual page.
    package let conclusion: ManualSection
    /// Sections that only the manual page has.
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

    /// The files that an installation has below `share`, with their paths there.
    package var files: [(path: String, text: String)] {
        let pages = [RoffPage(overview: self)] + commands.map { RoffPage($0, of: self) }
        return pages.map { ("man/man1/\($0.name).1", $0.text) } + [
            ("bash-completion/completions/\(name)", BashCompletion(self).text),
            ("zsh/site-functions/_\(name)", ZshCompletion(self).text),
            ("fish/vendor_completions.d/\(name).fish", FishCompletion(self).text),
        ]
    }

    /// The output of the hidden command `manual`: without operands the paths of ``files``, otherwise the content of the
    /// named file.
    /// - Returns: `nil` if the operands are wrong.
    package func manual(_ operands: [String]) -> String? {
        switch operands.count {
        case 0: files.map { $0.path + "\n" }.joined()
        case 1: files.first { $0.path == operands[0] }?.text
        default: nil
        }
    }
}
