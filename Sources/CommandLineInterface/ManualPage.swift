/// One command, as shown in help, manual pages and completions.
package struct ManualPage: Sendable {
    /// The name of the command, which follows the name of the program.
    package let name: String
    /// A summary of half a line.
    package let summary: String
    /// The forms of the command line without the name of the program, such as `put [OPTIONS] FILE... URL`.
    package let usage: [String]
    /// Paragraphs with an empty line between them, in lines of at most 90 characters.
    package let description: String
    package let options: [ManualOption]
    /// The completion of operands.
    package let operands: Completion
    /// Sections that only the manual page has.
    package let sections: [ManualSection]

    package init(
        _ name: String, _ summary: String, usage: [String], _ description: String, options: [ManualOption] = [],
        operands: Completion = .nothing, sections: [ManualSection] = []
    ) {
        self.name = name
        self.summary = summary
        self.usage = usage
        self.description = description
        self.options = options
        self.operands = operands
        self.sections = sections
    }

    /// The options by group, in their order.
    package var groups: [(title: String, options: [ManualOption])] {
        var groups: [(title: String, options: [ManualOption])] = []
        for option in options {
            if groups.last?.title == option.group {
                groups[groups.count - 1].options.append(option)
            } else {
                groups.append((option.group, [option]))
            }
        }
        return groups
    }
}

/// A section of a manual page.
package struct ManualSection: Sendable {
    package enum Block: Sendable {
        case paragraph(String)
        /// Terms and what they mean.
        case terms([(String, String)])
        /// Lines that are shown unchanged.
        case example(String)
    }

    package let title: String
    package let blocks: [Block]

    package init(_ title: String, _ blocks: [Block]) {
        self.title = title
        self.blocks = blocks
    }
}

/// One option, as shown in help, manual pages and completions.
package struct ManualOption: Sendable, Hashable {
    /// The long name without dashes.
    package let name: String
    /// The letter of the short form; `nil` if there is none.
    package let letter: Character?
    /// The placeholder of the value; `nil` if the option has no value.
    package let argument: String?
    /// The title of the group that contains the option.
    package let group: String
    /// The explanation in one or more lines of at most 70 characters.
    package let help: String
    package let isRepeatable: Bool
    package let values: Completion

    /// The explanation in one line.
    package var line: String { help.replacing("\n", with: " ") }
}

/// A program with its commands: the only source of `--help`, manual pages and completions.
package struct ProgramManual: Sendable {
    package let name: String
    package let version: String
    /// The date of this version as YYYY-MM-DD.
    package let date: String
    package let summary: String
    package let description: String
    package let commands: [ManualPage]
    /// The commands that every program has: their names, operands and summaries.
    static let ownCommands = [
        (name: "help", operands: " COMMAND", summary: "print the options of a command"),
        (name: "manual", operands: " [FILE]", summary: "list the manual pages and completions, or print one"),
        (name: "version", operands: "", summary: "print the version"),
    ]
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

    /// The files to install below the directory `share`. Their paths are relative to that directory.
    package var files: [(path: String, text: String)] {
        let pages = [RoffPage(overview: self)] + commands.map { RoffPage($0, of: self) }
        return pages.map { ("man/man1/\($0.name).1", $0.text) } + [
            ("bash-completion/completions/\(name)", BashCompletion(self).text),
            ("zsh/site-functions/_\(name)", ZshCompletion(self).text),
            ("fish/vendor_completions.d/\(name).fish", FishCompletion(self).text),
        ]
    }

    /// The output of the command `manual`: without operands the paths of ``files``, otherwise the content of the named
    /// file, with a line feed at its end.
    /// - Throws: ``OptionError`` if the operands are wrong.
    package func manual(_ operands: [String]) throws(OptionError) -> String {
        if operands.contains("--help") || operands.contains("-h") {
            return "usage: \(name) manual [FILE]\n\nLists the manual pages and completions, or prints one of them.\n"
        }
        guard operands.count <= 1 else { throw OptionError("unexpected '\(operands[1])': manual accepts one name") }
        guard let path = operands.first else { return files.map { $0.path + "\n" }.joined() }
        guard let file = files.first(where: { $0.path == path }) else {
            throw OptionError("there is no file '\(path)'; '\(name) manual' lists the files")
        }
        return file.text
    }
}
