import CommandLineInterface
import Foundation
import TestSupport
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
            ("command-line.md", ["put get resume cancel"]), ("scale.md", ["migrate"]),
        ])
    func options(document: String, tables: [String]) throws {
        let file = Self.documents.appending(path: document)
        let text = try String(contentsOf: file, encoding: .utf8)
        var current = text
        for table in tables {
            let pages = try table.split(separator: " ").map { name in
                try #require(Onward.commands.first { $0.page.name == name }).page
            }
            let start = try #require(current.range(of: "<!-- options of \(table) -->\n"))
            let end = try #require(current.range(of: "<!-- end -->", range: start.upperBound..<current.endIndex))
            current.replaceSubrange(start.upperBound..<end.lowerBound, with: Self.table(pages))
        }
        if ProcessInfo.processInfo.environment["ONWARD_UPDATE_DOCUMENTS"] == "1" {
            try current.write(to: file, atomically: true, encoding: .utf8)
        } else {
            #expect(text == current, "run the tests once with ONWARD_UPDATE_DOCUMENTS=1")
        }
    }

    @Test(
        "The variables in docs/scale.md are valid settings of serve",
        arguments: ["ONWARD_TOKEN_FILE=", "ONWARD_CATALOG_DIRECT="])
    func variables(text: String) throws {
        var environment: [String: String] = [:]
        for line in try DocumentBlock.content(in: "docs/scale.md", containing: text).split(separator: "\n") {
            let parts = line.split(separator: "=", maxSplits: 1)
            guard line.hasPrefix("ONWARD_"), parts.count == 2 else { continue }
            environment[String(parts[0])] = parts[1].filter { $0 != "\"" }
        }
        #expect(environment.count >= 2)
        var settings = ServeSettings()
        let parser = OptionParser(options: ServeSettings.options)
        try parser.parse([], environment: environment, into: &settings)
        #expect(parser.unknownVariables(of: environment) == [])
        if environment["ONWARD_BLOBS"] != nil { try settings.check() }
    }

    /// A table of the options of one command, or of several, with a column for each of them. The table of `serve` also has
    /// the variables of the environment.
    private static func table(_ pages: [ManualPage]) -> String {
        let isServe = pages.map(\.name) == ["serve"]
        let columns = isServe ? ["Variable"] : pages.count > 1 ? pages.map { "`\($0.name)`" } : []
        var text = row(["Option"] + columns + [""]) + "|" + String(repeating: "---|", count: columns.count + 2) + "\n"
        for group in merged(pages.map { $0.groups.map(\.title) }) {
            text += row(["**\(group)**"] + columns.map { _ in "" } + [""])
            let options = pages.map { $0.groups.first { $0.title == group }?.options ?? [] }
            for name in merged(options.map { $0.map(\.name) }) {
                let owned = options.map { $0.first { $0.name == name } }
                // Commands can describe an option differently.
                for line in merged(owned.map { $0.map { [$0.line] } ?? [] }) {
                    guard let option = owned.first(where: { $0?.line == line }) ?? nil else { continue }
                    let short = option.letter.map { "`-\($0)`, " } ?? ""
                    let argument = option.argument.map { " " + $0 } ?? ""
                    let cells =
                        isServe
                        ? ["`ONWARD_\(name.uppercased().replacing("-", with: "_"))`"]
                        : columns.isEmpty ? [] : owned.map { $0?.line == line ? "yes" : "" }
                    text += row(["\(short)`--\(name)\(argument)`"] + cells + [line])
                }
            }
        }
        return text
    }

    private static func row(_ cells: [String]) -> String {
        "|" + cells.map { ($0.isEmpty ? "" : " " + $0.replacing("|", with: "\\|")) + " |" }.joined() + "\n"
    }

    /// The elements of all lists without repetitions. An element that only a later list has follows the one before it.
    private static func merged(_ lists: [[String]]) -> [String] {
        var result: [String] = []
        for list in lists {
            var position = 0
            for element in list {
                if let index = result.firstIndex(of: element) {
                    position = index + 1
                } else {
                    result.insert(element, at: position)
                    position += 1
                }
            }
        }
        return result
    }
}
