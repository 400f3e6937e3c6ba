@testable import CommandLineInterface

/// A program that has every kind of option, operand and command.
enum Sample {
    static func option(
        _ name: String, letter: Character? = nil, _ argument: String? = nil, _ values: Completion = .nothing,
        help: String = "help", repeatable: Bool = false, group: String = "Group"
    ) -> ManualOption {
        ManualOption(
            name: name, letter: letter, argument: argument, group: group, help: help, isRepeatable: repeatable,
            values: values)
    }

    static let options = [
        option("flag"), option("file", letter: "f", "FILE", .files), option("dir", "DIR", .directories),
        option("color", "C", .words(["red", "green", "gray"])), option("free", "N", repeatable: true, group: "Other"),
    ]

    static let program = program(description: "First line.\nSecond line.")

    static func program(description: String) -> ProgramManual {
        ProgramManual(
            "sam-ple", version: "1.2", date: "2026-01-02", "a sample", description,
            commands: [
                ManualPage(
                    "take", "take files", usage: ["take [OPTIONS] FILE..."], description, options: options,
                    operands: .files),
                ManualPage(
                    "go", "continue", usage: ["go [NAME]"], "Continues.", operands: .lines(#"printf '%s\n' "$NAMES""#)),
                ManualPage("stop", "end", usage: ["stop", "stop now"], "Ends."),
            ],
            conclusion: ManualSection("Exit status", [.terms([("0", "done"), ("64", "wrong\nusage")])]),
            sections: [ManualSection("Examples", [.example("sam-ple take x\n.dot")])])
    }
}
