/// Completions for fish.
package struct FishCompletion {
    package let text: String

    package init(_ program: ProgramManual) {
        var text = "# fish completion for \(program.name)\n\ncomplete -c \(program.name) -f\n"
        let start = "complete -c \(program.name) -n __fish_use_subcommand"
        let commands =
            program.commands.map { ($0.name, $0.summary) } + ProgramManual.ownCommands.map { ($0.name, $0.summary) }
        for (name, summary) in commands {
            text += "\(start) -a \(Self.quoted(name)) -d \(Self.quoted(summary))\n"
        }
        for page in program.commands {
            let inside = "complete -c \(program.name) -n '__fish_seen_subcommand_from \(page.name)'"
            text += "\n"
            for option in page.options {
                let letter = option.letter.map { " -s \($0)" } ?? ""
                let value = option.argument == nil ? "" : Self.value(option.values)
                text += "\(inside)\(letter) -l \(option.name)\(value) -d \(Self.quoted(option.line))\n"
            }
            text += "\(inside) -l help -d 'show help'\n"
            if page.operands != .nothing { text += inside + Self.operand(page.operands) + "\n" }
        }
        self.text = text
    }

    private static func value(_ completion: Completion) -> String {
        switch completion {
        case .files: " -r -F"
        default: " -x" + operand(completion)
        }
    }

    private static func operand(_ completion: Completion) -> String {
        switch completion {
        case .nothing: ""
        case .files: " -F"
        case .directories: " -a '(__fish_complete_directories)'"
        case .words(let words): " -a \(quoted(words.joined(separator: " ")))"
        case .lines(let command): " -a \(quoted("(\(command))"))"
        }
    }

    private static func quoted(_ text: String) -> String {
        "'" + text.replacing("\\", with: "\\\\").replacing("'", with: "\\'") + "'"
    }
}
