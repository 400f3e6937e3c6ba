extension TerminalReport {
    /// The line of one finding.
    package func line(of finding: ProxyFinding) -> String {
        "  \(symbol(of: finding.grade)) \(finding.title.padding(to: 30)) \(VisibleText.of(finding.answer))\n"
    }

    /// The transcripts of the findings that are poor or bad, and the recommended settings.
    package func closing(_ report: ProxyReport, shouldShowTranscripts: Bool) -> String {
        var text = ""
        if shouldShowTranscripts {
            for finding in report.findings where finding.grade == .bad || finding.grade == .poor {
                text += "\n\(symbol(of: finding.grade)) " + paint(finding.title, .bold)
                text += "  \(VisibleText.of(finding.answer))\n"
                for entry in finding.transcript { text += paint(TranscriptText.lines(of: entry), .faint) }
                if finding.omittedEvents > 0 { text += "    … and \(finding.omittedEvents) more events\n" }
            }
        }
        text += "\n" + paint(VisibleText.of(report.url), .bold)
        text += "  \(report.findings.count) checks in \(report.milliseconds / 1000)."
        text += "\(report.milliseconds % 1000 / 100) s\n"
        if let failure = report.failure {
            text += paint("Could not verify: \(VisibleText.of(failure))", .red) + "\n"
        }
        guard let verdict = report.verdict else { return text }
        switch verdict.usability {
        case .usable: text += paint("Uploads work.", .green) + "\n"
        case .limited: text += paint("Uploads work, with these settings and limits:", .yellow) + "\n"
        case .unusable: text += paint("Resumable uploads do not work through this proxy.", .red) + "\n"
        }
        for setting in verdict.settings { text += "  · \(VisibleText.of(setting))\n" }
        return text
    }

    private func symbol(of grade: ProxyFinding.Grade) -> String {
        switch grade {
        case .good: paint("✓", .green)
        case .poor: paint("!", .yellow)
        case .bad: paint("✗", .red)
        case .neutral: paint("·", .faint)
        }
    }
}
