import CommandLineInterface
import Foundation
import Testing

@testable import onward

/// Tables of options in documents are generated from the options: `ONWARD_UPDATE_DOCUMENTS=1` writes them, otherwise
/// they are compared.
@Suite("Tables of options in documents")
struct OptionTableTests {
    private static let documents = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../docs")

    @Test(
        "A document contains every option of a command",
        arguments: [
            ("operating.md", ["serve", "check", "health"]), ("gateway.md", ["outcomes"]), ("events.md", ["events"]),
            ("command-line.md", ["put", "get", "resume", "cancel"]), ("scale.md", ["migrate"]),
        ])
    func options(document: String, commands: [String]) throws {
        let file = Self.documents.appending(path: document)
        let text = try String(contentsOf: file, encoding: .utf8)
        var current = text
        for command in commands {
            let page = try #require(Onward.commands.first { $0.page.name == command }).page
            let start = try #require(current.range(of: "<!-- options of \(command) -->\n"))
            let end = try #require(current.range(of: "<!-- end -->", range: start.upperBound..<current.endIndex))
            current.replaceSubrange(
                start.upperBound..<end.lowerBound,
                with: Self.table(page, variables: command == "serve"))
        }
        if ProcessInfo.processInfo.environment["ONWARD_UPDATE_DOCUMENTS"] == "1" {
            try current.write(to: file, atomically: true, encoding: .utf8)
        } else {
            #expect(text == current, "run the tests once with ONWARD_UPDATE_DOCUMENTS=1")
        }
    }

    /// - Parameter variables: whether the options can also be set in the environment.
    private static func table(_ page: ManualPage, variables: Bool) -> String {
        var text = variables ? "| Option | Variable | |\n|---|---|---|\n" : "| Option | |\n|---|---|\n"
        for group in page.groups {
            text += "| **\(group.title)** |" + (variables ? " | |\n" : " |\n")
            for option in group.options {
                let short = option.letter.map { "`-\($0)`, " } ?? ""
                let argument = option.argument.map { " " + $0 } ?? ""
                text += "| \(short)`--\(option.name)\(argument.replacing("|", with: "\\|"))` |"
                if variables { text += " `ONWARD_\(option.name.uppercased().replacing("-", with: "_"))` |" }
                text += " \(option.line.replacing("|", with: "\\|")) |\n"
            }
        }
        return text
    }
}
