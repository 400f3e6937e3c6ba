/// Completions for zsh, made with `_arguments`.
package struct ZshCompletion {
    package let text: String

    package init(_ program: ProgramManual) {
        let function = "_" + program.name
        var text = "#compdef \(program.name)\n\n"
        for page in program.commands {
            if case .lines(let command) = page.operands {
                text += "\(Self.operandsFunction(page, function))() {\n    compadd -- ${(f)\"$(\(command))\"}\n}\n\n"
            }
        }
        text += """
            \(function)() {
                local curcontext=$curcontext
                local -a commands
                commands=(

            """
        let commands =
            program.commands.map { ($0.name, $0.summary) } + ProgramManual.ownCommands.map { ($0.name, $0.summary) }
        for (name, summary) in commands { text += "        \(Self.quoted(Self.escaped(name) + ":" + summary))\n" }
        text += """
                )
                if ((CURRENT == 2)); then
                    _describe -t commands '\(program.name) command' commands
                    return
                fi
                shift words
                ((CURRENT--))
                curcontext="${curcontext%:*:*}:\(program.name)-$words[1]:"
                case $words[1] in

            """
        for page in program.commands {
            var specifications = page.options.map(Self.specification) + ["'--help[show help]'"]
            // If operands without completions were specified, `_arguments` would not offer the options.
            if page.operands != .nothing {
                let operands = Self.action(page.operands, Self.operandsFunction(page, function))
                specifications.append(Self.quoted("*:operand:" + operands))
            }
            text += "    \(page.name))\n        _arguments -S \\\n            "
            text += specifications.joined(separator: " \\\n            ") + "\n        ;;\n"
        }
        self.text = text + "    esac\n}\n\n\(function) \"$@\"\n"
    }

    private static func specification(of option: ManualOption) -> String {
        let explanation = "[\(escaped(option.line))]"
        let repetition = option.isRepeatable ? "*" : ""
        guard let argument = option.argument else {
            guard let letter = option.letter else { return quoted("--\(option.name)\(explanation)") }
            return quoted("(-\(letter) --\(option.name))") + "{-\(letter),--\(option.name)}" + quoted(explanation)
        }
        let value = "\(explanation):\(escaped(argument)):\(action(option.values))"
        guard let letter = option.letter else { return quoted("\(repetition)--\(option.name)=\(value)") }
        return quoted("(-\(letter) --\(option.name))") + "{-\(letter),--\(option.name)=}" + quoted(value)
    }

    /// The function that offers a command's operands.
    private static func operandsFunction(_ page: ManualPage, _ function: String) -> String {
        "\(function)_\(page.name)_operands"
    }

    private static func action(_ completion: Completion, _ operandsFunction: String = " ") -> String {
        switch completion {
        case .nothing: " "
        case .files: "_files"
        case .directories: "_files -/"
        case .words(let words): "(\(words.map(escaped).joined(separator: " ")))"
        case .lines: operandsFunction
        }
    }

    /// Escapes the characters that have a meaning for `_arguments`.
    private static func escaped(_ text: String) -> String {
        var result = ""
        for character in text {
            if "\\:[]".contains(character) { result.append("\\") }
            result.append(character)
        }
        return result
    }

    private static func quoted(_ text: String) -> String { "'" + text.replacing("'", with: "'\\''") + "'" }
}
