/// Completions for bash. They do not need the package bash-completion.
package struct BashCompletion {
    package let text: String

    package init(_ program: ProgramManual) {
        let function = "_" + program.name.replacing("-", with: "_")
        let names = program.commands.map(\.name) + ProgramManual.ownCommands.map(\.name)
        var text = """
            # bash completion for \(program.name)                               -*- shell-script -*-

            \(function)_words() {
                mapfile -t COMPREPLY < <(compgen -W "$1" -- "$current")
            }

            \(function)_files() {
                compopt -o filenames 2>/dev/null
                mapfile -t COMPREPLY < <(compgen "$1" -- "$current")
            }

            # Offers lines of standard input. They are never passed to compgen, which would expand them.
            \(function)_lines() {
                local line
                while IFS= read -r line; do
                    [[ $line != "$current"* ]] || COMPREPLY+=("$(printf %q "$line")")
                done
            }

            \(function)() {
                local current=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]}
                COMPREPLY=()
                if ((COMP_CWORD == 1)); then
                    \(function)_words '\(names.joined(separator: " "))'
                    return
                fi
                # In --option=value, bash treats the equals sign as a separate word.
                if [[ $current == = ]]; then
                    current=
                elif [[ $option == = ]]; then
                    option=${COMP_WORDS[COMP_CWORD - 2]}
                fi
                case ${COMP_WORDS[1]} in

            """
        for page in program.commands { text += Self.commandCase(page, function) }
        self.text = text + "    esac\n}\n\ncomplete -F \(function) \(program.name)\n"
    }

    /// The branch of the function for one command.
    private static func commandCase(_ page: ManualPage, _ function: String) -> String {
        var text = "    \(page.name))\n        case $option in\n"
        var offers: [(values: Completion, forms: [String])] = []
        for option in page.options where option.argument != nil {
            let forms = (option.letter.map { ["-\($0)"] } ?? []) + ["--" + option.name]
            if let index = offers.firstIndex(where: { $0.values == option.values }) {
                offers[index].forms += forms
            } else {
                offers.append((option.values, forms))
            }
        }
        for (values, forms) in offers {
            text += "        \(forms.joined(separator: " | ")))\n"
            if values != .nothing { text += "            \(offer(values, function))\n" }
            text += "            return\n            ;;\n"
        }
        let options = page.options.map { "--" + $0.name } + ["--help"]
        return text + """
                    esac
                    if [[ $current == -* ]]; then
                        \(function)_words '\(options.joined(separator: " "))'
                    else
                        \(offer(page.operands, function))
                    fi
                    ;;

            """
    }

    private static func offer(_ completion: Completion, _ function: String) -> String {
        switch completion {
        case .nothing: ":"
        case .files: "\(function)_files -f"
        case .directories: "\(function)_files -d"
        case .words(let words): "\(function)_words '\(words.joined(separator: " "))'"
        case .lines(let command): "\(function)_lines < <(\(command))"
        }
    }
}
