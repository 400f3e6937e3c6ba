/// A Markdown table of the numbers of passed cases, with a column for each subject and a row for each section, and a list
/// of the requirements that each subject does not meet.
package struct MarkdownMatrix: Sendable {
    package let text: String

    /// - Throws: ``RunFailure`` if some reports are of servers and others are of clients.
    package init(_ subjects: [MatrixSubject]) throws {
        guard let mode = subjects.first?.mode, subjects.allSatisfy({ $0.mode == mode }) else {
            throw RunFailure("reports of servers and of clients cannot be in the same matrix")
        }
        var lines = ["| Section | " + subjects.map { Self.cell($0.name) }.joined(separator: " | ") + " |"]
        lines.append("|---|" + subjects.map { _ in "--:|" }.joined())
        lines.append("| tested on | " + subjects.map(\.date).joined(separator: " | ") + " |")
        if subjects.contains(where: { !$0.profiles.isEmpty }) {
            let versions = subjects.map { $0.profiles.sorted().joined(separator: ", ") }
            lines.append("| versions | " + versions.joined(separator: " | ") + " |")
        }
        for group in Self.groups(of: subjects) {
            let cells = subjects.map { subject in Self.count(subject.cases.filter { Self.group($0) == group }) }
            lines.append("| \(Self.cell(SectionTitle.title(of: group))) | " + cells.joined(separator: " | ") + " |")
        }
        lines.append("| **all** | " + subjects.map { "**\(Self.count($0.cases))**" }.joined(separator: " | ") + " |")
        lines += [
            "",
            "A cell has the numbers of passed/tested cases, and of problems: ✗ a MUST is not met, ! a SHOULD is not "
                + "met, ? not verified. Cases about features that a subject does not offer are not counted.",
        ]
        for subject in subjects { lines += Self.details(of: subject) }
        text = lines.joined(separator: "\n") + "\n"
    }

    private static func groups(of subjects: [MatrixSubject]) -> [String] {
        // Groups have the order of the first report. A group that is only in a later report is inserted after the group
        // that precedes it in that report.
        var groups: [String] = []
        for subject in subjects {
            var place = groups.startIndex
            for next in subject.cases.map(group) {
                if let known = groups.firstIndex(of: next) {
                    place = max(place, known + 1)
                } else {
                    groups.insert(next, at: place)
                    place += 1
                }
            }
        }
        return groups
    }

    private static func group(_ next: MatrixSubject.CasePart) -> String { String(next.id.prefix { $0 != "/" }) }

    private static func count(_ cases: [MatrixSubject.CasePart]) -> String {
        func count(_ words: String...) -> Int { cases.count { words.contains($0.outcome) } }
        let tested = cases.count - count("skipped")
        if tested == 0 { return "–" }
        var text = "\(count("pass"))/\(tested)"
        for (mark, number) in [
            ("✗", count("fail")), ("!", count("warn")), ("?", count("blocked", "setup", "harness")),
        ] where number > 0 {
            text += " \(mark)\(number)"
        }
        return text
    }

    private static func details(of subject: MatrixSubject) -> [String] {
        let unmet = subject.cases.filter { ["fail", "warn"].contains($0.outcome) }
        if unmet.isEmpty && subject.failure == nil { return [] }
        var lines = ["", "### \(VisibleText.of(subject.name).replacing("\n", with: " "))", ""]
        if let failure = subject.failure { lines.append("- not all cases were run: \(cell(failure))") }
        for next in unmet {
            let mark = next.outcome == "fail" ? "✗" : "!"
            let (expected, seen) = (cell(next.expected ?? ""), cell(next.seen ?? ""))
            lines.append("- \(mark) `\(next.id)`: expected \(expected), seen: \(seen)")
        }
        return lines
    }

    /// Returns text that is valid in a cell of a table and in an item of a list.
    private static func cell(_ text: String) -> String {
        var result = ""
        for character in VisibleText.of(String(text.prefix(160))) {
            switch character {
            case "|", "<", "*", "_", "`", "[", "]", "\\": result += "\\\(character)"
            case "\n", "\r", "\r\n": result += " "
            default: result.append(character)
            }
        }
        return result + (text.count > 160 ? "…" : "")
    }
}
