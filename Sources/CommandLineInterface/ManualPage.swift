/// One command as help, manual and completions show it.
package struct ManualPage: Sendable {
    /// The word behind the program's name.
    package let name: String
    /// What it does, in half a line.
    package let summary: String
    /// What can stand behind the program's name, a line for each form, such as `put [OPTIONS] FILE... URL`.
    package let usage: [String]
    /// Paragraphs with an empty line between them, in lines of 90 characters at most.
    package let description: String
    package let options: [ManualOption]
    /// What completes words that are neither options nor their values.
    package let operands: Completion
    /// What only the manual has.
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
