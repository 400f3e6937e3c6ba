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
