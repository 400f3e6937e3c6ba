/// The report for a terminal: a line for each case, then the failures with their transcripts, then the totals.
package struct TerminalReport {
    private let hasColors: Bool
    private let width: Int
    private var heading = ""

    package init(hasColors: Bool, width: Int) {
        self.hasColors = hasColors
        self.width = max(60, width)
    }

    /// Returns the line of a case. The heading of the section precedes the line of its first case.
    package mutating func line(of result: CaseResult) -> String {
        let group = result.info.group
        var text = ""
        if group != heading {
            heading = group
            text = "\n" + paint(SectionTitle.title(of: group), .bold) + "\n"
        }
        let left =
            "  \(symbol(of: result.outcome)) \(result.info.level.rawValue.padding(to: 6)) "
            + result.info.id.dropFirst(group.count + 1).description.padding(to: 28) + " "
        let room = max(20, width - 41)
        let shown = result.outcome.summary ?? result.info.requirement
        text += left + Self.cut(shown, to: room) + "\n"
        for note in result.notes {
            text += String(repeating: " ", count: 11) + paint(VisibleText.of(note), .faint) + "\n"
        }
        return text
    }

    /// Returns the failures with their transcripts, and the totals.
    package func closing(_ report: some CaseReport, strict: Bool) -> String {
        var text = ""
        for result in report.results { text += details(of: result) }
        text += "\n" + report.subjects.map { paint(VisibleText.of($0), .bold) }.joined(separator: "\n")
        text += "  \(VisibleText.of(report.remark))\n"
        if !report.results.isEmpty {
            text += "\(report.results.count) cases in \(report.seconds): \(report.counts)\n"
        }
        if let failure = report.failure { text += paint("Could not verify: \(VisibleText.of(failure))", .red) + "\n" }
        switch report.exitStatus(strict: strict) {
        case 0: text += paint(report.count("warn") == 0 ? "Conforms." : "Conforms, with warnings.", .green) + "\n"
        case 1: text += paint("Does not conform.", .red) + "\n"
        default: break
        }
        return text
    }

    func details(of result: CaseResult) -> String {
        let finding: Finding
        switch result.outcome {
        case .fail(let found), .warn(let found), .setup(let found): finding = found
        case .harness(let text):
            finding = Finding(expected: "a verdict", seen: "internal error of the harness: \(text)")
        case .pass, .skipped, .blocked: return ""
        }
        var text = "\n\(symbol(of: result.outcome)) " + paint(result.info.id, .bold)
        text += "  (\(result.info.level.rawValue), \(result.info.section))\n"
        text += "  requirement  \(VisibleText.of(result.info.requirement))\n"
        if case .setup = result.outcome { text += "  during the preparation of the case\n" }
        text += "  expected     \(VisibleText.of(finding.expected))\n  seen         \(VisibleText.of(finding.seen))\n"
        if let command = result.command { text += "  repeat with  \(VisibleText.of(command))\n" }
        for entry in result.transcript { text += paint(TranscriptText.lines(of: entry), .faint) }
        if result.omittedEvents > 0 { text += "    … and \(result.omittedEvents) more events\n" }
        return text
    }

    func symbol(of outcome: Outcome) -> String {
        switch outcome {
        case .pass: paint("✓", .green)
        case .fail: paint("✗", .red)
        case .warn: paint("!", .yellow)
        case .skipped: paint("–", .faint)
        case .blocked: paint("◦", .faint)
        case .setup: paint("?", .yellow)
        case .harness: paint("‽", .red)
        }
    }

    enum Paint: String {
        case bold = "1"
        case faint = "2"
        case red = "31"
        case green = "32"
        case yellow = "33"
    }

    func paint(_ text: String, _ paint: Paint) -> String {
        hasColors ? "\u{1B}[\(paint.rawValue)m\(text)\u{1B}[0m" : text
    }

    private static func cut(_ text: String, to room: Int) -> String {
        let line = VisibleText.of(text).split(separator: "\n").joined(separator: " ")
        return line.count <= room ? line : line.prefix(room - 1) + "…"
    }
}
