/// The output of `--help`.
package struct HelpText {
    /// The text, without a line feed at its end.
    package let text: String

    /// The text for one command.
    package init(_ page: ManualPage, of program: String) {
        var text = ""
        for (index, form) in page.usage.enumerated() {
            text += (index == 0 ? "usage: " : "       ") + "\(program) \(form)\n"
        }
        text += "\n\(page.description)\n"
        for group in page.groups {
            text += "\n\(group.title):\n"
            for option in group.options { text += HelpText.lines(of: option) }
        }
        self.text = String(text.dropLast())
    }

    /// The text for the program.
    package init(overview program: ProgramManual) {
        let lines =
            program.commands.flatMap { page in
                // The summary of a command describes all of its forms.
                page.usage.enumerated().map { index, form in
                    (form.replacing(" [OPTIONS]", with: ""), index == 0 ? page.summary : "")
                }
            } + ProgramManual.ownCommands.map { ($0.name + $0.operands, $0.summary) }
        let width = program.name.count + 1 + (lines.map(\.0.count).max() ?? 0) + 2
        var text = ""
        for (index, (form, summary)) in lines.enumerated() {
            let start = index == 0 ? "usage: " : "       "
            let command = "\(program.name) \(form)"
            text += start + (summary.isEmpty ? command : HelpText.padded(command, to: width) + summary) + "\n"
        }
        text += "\n\(program.description)\n"
        for block in program.conclusion.blocks {
            switch block {
            case .paragraph(let paragraph): text += "\n\(paragraph)\n"
            case .example(let lines): text += "\n\(lines)\n"
            case .terms(let terms):
                let width = (terms.map(\.0.count).max() ?? 0) + 4
                text += "\n"
                for (term, meaning) in terms {
                    let indent = "\n" + String(repeating: " ", count: width)
                    text += HelpText.padded("  " + term, to: width) + meaning.replacing("\n", with: indent) + "\n"
                }
            }
        }
        self.text = text + "\n'\(program.name) COMMAND --help' lists the options."
    }

    private static func lines(of option: ManualOption) -> String {
        let short = option.letter.map { "-\($0), " } ?? ""
        let head = "  \(short)--\(option.name)" + (option.argument.map { " " + $0 } ?? "")
        let indent = String(repeating: " ", count: 30)
        return (head.count < 30 ? padded(head, to: 30) : head + "\n" + indent)
            + option.help.replacing("\n", with: "\n" + indent) + "\n"
    }

    private static func padded(_ text: String, to width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }
}
