/// A manual page in the man(7) macros.
package struct RoffPage {
    package let name: String
    package private(set) var text: String

    /// Creates the manual page of one command.
    package init(_ page: ManualPage, of program: ProgramManual) {
        self.init("\(program.name)-\(page.name)", page.summary, program)
        section("Synopsis")
        synopsis(page.usage.map { "\(program.name) \($0)" })
        section("Description")
        paragraphs(page.description)
        if !page.options.isEmpty { section("Options") }
        for group in page.groups {
            // A single group named "Options" gets no heading.
            if group.title != "Options" { text += ".SS \(Self.quoted(group.title))\n" }
            for option in group.options { entry(of: option) }
        }
        for section in page.sections { add(section) }
        let others = program.commands.map(\.name).filter { $0 != page.name }.map { "\(program.name)-\($0)" }
        seeAlso([program.name] + others)
    }

    /// Creates the manual page of the program, which lists its commands.
    package init(overview program: ProgramManual) {
        self.init(program.name, program.summary, program)
        section("Synopsis")
        let own = ProgramManual.ownCommands.map { $0.name + $0.operands }
        synopsis((program.commands.flatMap(\.usage) + own).map { "\(program.name) \($0)" })
        section("Description")
        paragraphs(program.description)
        section("Commands")
        for page in program.commands {
            term(".BR \(Self.escaped("\(program.name)-\(page.name)")) (1)", page.summary)
        }
        add(program.conclusion)
        for section in program.sections { add(section) }
        seeAlso(program.commands.map { "\(program.name)-\($0.name)" })
    }

    private init(_ name: String, _ summary: String, _ program: ProgramManual) {
        self.name = name
        // Hyphenation and adjustment are off because the text contains command lines.
        text = """
            .TH \(Self.escaped(name.uppercased())) 1 \(program.date) "\(program.name) \(program.version)" "User Commands"
            .nh
            .ad l
            .SH NAME
            \(Self.escaped(name)) \\- \(Self.escaped(summary))

            """
    }

    private mutating func section(_ title: String) { text += ".SH \(Self.quoted(title.uppercased()))\n" }

    private mutating func add(_ section: ManualSection) {
        self.section(section.title)
        for (index, block) in section.blocks.enumerated() {
            switch block {
            case .paragraph(let paragraph):
                if index > 0 { text += ".PP\n" }
                paragraphs(paragraph)
            case .terms(let terms): for (name, meaning) in terms { term(".B \(Self.escaped(name))", meaning) }
            case .example(let lines):
                text += (index > 0 ? ".PP\n" : "") + ".EX\n"
                for line in lines.split(separator: "\n", omittingEmptySubsequences: false) {
                    text += Self.line(String(line)) + "\n"
                }
                text += ".EE\n"
            }
        }
    }

    private mutating func paragraphs(_ prose: String) {
        var paragraph: [String] = []
        func end(_ text: inout String) {
            if !paragraph.isEmpty { text += paragraph.joined(separator: "\n") + "\n" }
            paragraph = []
        }
        for line in prose.split(separator: "\n", omittingEmptySubsequences: false) {
            if line.isEmpty {
                end(&text)
                text += ".PP\n"
            } else {
                paragraph.append(Self.line(String(line)))
            }
        }
        end(&text)
    }

    private mutating func term(_ tag: String, _ meaning: String) {
        text += ".TP\n\(tag)\n"
        paragraphs(meaning)
    }

    private mutating func entry(of option: ManualOption) {
        let long = "\\fB\\-\\-\(Self.escaped(option.name))\\fR"
        let short = option.letter.map { "\\fB\\-\($0)\\fR, " } ?? ""
        let value = option.argument.map { " \\fI\(Self.escaped($0))\\fR" } ?? ""
        text += ".TP\n\(short)\(long)\(value)\n"
        paragraphs(option.help)
    }

    /// Adds the synopsis, with program and command in bold and placeholders in italic.
    private mutating func synopsis(_ forms: [String]) {
        for (index, form) in forms.enumerated() {
            let bold = form.split(separator: " ").prefix(2).joined(separator: " ")
            let remaining = Self.placeholders(String(form.dropFirst(bold.count)))
            text += (index > 0 ? ".br\n" : "") + "\\fB\(Self.escaped(bold))\\fR\(remaining)\n"
        }
    }

    /// Returns the text with placeholders (words in capitals) in italic and options in bold.
    private static func placeholders(_ text: String) -> String {
        var result = ""
        var word = ""
        func end() {
            if word.hasPrefix("-") {
                result += "\\fB\(escaped(word))\\fR"
            } else if word.count > 0, word.allSatisfy({ $0.isUppercase }) {
                result += "\\fI\(word)\\fR"
            } else {
                result += escaped(word)
            }
            word = ""
        }
        for character in text {
            if character.isLetter || character == "-" {
                word.append(character)
            } else {
                end()
                result += escaped(String(character))
            }
        }
        end()
        return result
    }

    private mutating func seeAlso(_ names: [String]) {
        section("See also")
        for (index, name) in names.enumerated() {
            text += ".BR \(Self.escaped(name)) (1)" + (index < names.count - 1 ? " ,\n" : "\n")
        }
    }

    private static func quoted(_ title: String) -> String { "\"\(escaped(title))\"" }

    /// Escapes a line of text. A period or an apostrophe at its beginning would otherwise begin a command of roff.
    private static func line(_ text: String) -> String {
        let escaped = escaped(text)
        return escaped.hasPrefix(".") || escaped.hasPrefix("'") ? "\\&" + escaped : escaped
    }

    /// Escapes text, so that a reader can copy it from the page to a shell: hyphens and quotes stay ASCII characters.
    package static func escaped(_ text: String) -> String {
        var result = ""
        for character in text {
            switch character {
            case "\\": result += "\\e"
            case "-": result += "\\-"
            case "'": result += "\\(aq"
            case "`": result += "\\(ga"
            case "^": result += "\\(ha"
            case "~": result += "\\(ti"
            case "\"": result += "\\(dq"
            case "…": result += "..."
            default: result.append(character)
            }
        }
        return result
    }
}
