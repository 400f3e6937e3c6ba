import FoundationEssentials

/// The report of a run as one self-contained HTML page: the verdict, a table of sections, every case, and the transcripts
/// of failed cases.
package struct HTMLReport {
    package let text: String

    package init(_ report: some CaseReport, strict: Bool) {
        let date = Date(timeIntervalSince1970: Double(report.beganAt)).formatted(.iso8601)
        let verdict =
            switch report.exitStatus(strict: strict) {
            case 0: report.count("warn") == 0 ? "Conforms" : "Conforms, with warnings"
            case 1: "Does not conform"
            default: "Could not be verified"
            }
        let state = ["good", "bad", "unknown"][Int(report.exitStatus(strict: strict))]
        let subjects = report.subjects.map(Markup.escaped)
        var page = """
            <!doctype html>
            <html lang="en">
            <head>
            <meta charset="utf-8">
            <meta name="viewport" content="width=device-width, initial-scale=1">
            <title>\(subjects.joined(separator: ", ")): conformance</title>
            <style>
            \(Self.style)
            </style>
            </head>
            <body>
            <header>
            <p class="kind">Resumable Uploads for HTTP: conformance of a \(report.role)</p>
            <h1>\(subjects.joined(separator: "<br/>"))</h1>
            <p class="verdict \(state)">\(verdict)</p>
            <p>Tested on <span class="when">\(date)</span>: \(Markup.escaped(report.remark)). \(report.results.count) cases in \
            \(report.seconds).</p>

            """
        if let failure = report.failure {
            page += "<p class=\"bad\">Could not verify: \(Markup.escaped(failure))</p>\n"
        }
        page += "</header>\n<main>\n" + Self.sections(report)
        for group in report.groups { page += Self.cases(group, report) }
        text = page + "</main>\n</body>\n</html>\n"
    }

    private static func sections(_ report: some CaseReport) -> String {
        let words = Outcome.words.filter { report.count($0) > 0 }
        var text = "<div class=\"wide\"><table>\n<thead><tr><th scope=\"col\">Section</th>"
        for word in words { text += "<th scope=\"col\" class=\"number\">\(word)</th>" }
        text += "</tr></thead>\n<tbody>\n"
        for group in report.groups {
            let results = report.results.filter { $0.info.group == group }
            text += "<tr><th scope=\"row\"><a href=\"#\(anchor(group))\">"
            text += "\(Markup.escaped(SectionTitle.title(of: group)))</a></th>"
            for word in words {
                let count = results.count { $0.outcome.word == word }
                text += "<td class=\"number \(count == 0 ? "none" : word)\">\(count)</td>"
            }
            text += "</tr>\n"
        }
        text += "</tbody>\n<tfoot><tr><th scope=\"row\">All</th>"
        for word in words { text += "<td class=\"number \(word)\">\(report.count(word))</td>" }
        return text + "</tr></tfoot>\n</table></div>\n"
    }

    private static func cases(_ group: String, _ report: some CaseReport) -> String {
        var text =
            "<section id=\"\(anchor(group))\">\n<h2>\(Markup.escaped(SectionTitle.title(of: group)))</h2>\n<ul>\n"
        for result in report.results where result.info.group == group {
            let word = result.outcome.word
            let head =
                "<span class=\"mark \(word)\">\(word)</span> <code>\(Markup.escaped(result.info.id))</code> "
                + "<span class=\"level\">\(result.info.level.rawValue)</span> "
                + Markup.escaped(result.info.requirement)
            let body = details(of: result)
            text += body.isEmpty ? "<li>\(head)</li>\n" : "<li><details\(isInitiallyOpen(result) ? " open=\"\"" : "")>"
            if !body.isEmpty { text += "<summary>\(head)</summary>\n\(body)</details></li>\n" }
        }
        return text + "</ul>\n</section>\n"
    }

    private static func isInitiallyOpen(_ result: CaseResult) -> Bool {
        ["fail", "setup", "harness"].contains(result.outcome.word)
    }

    private static func details(of result: CaseResult) -> String {
        var rows: [(String, String)] = []
        switch result.outcome {
        case .pass: break
        case .fail(let finding), .warn(let finding), .setup(let finding):
            rows = [("expected", finding.expected), ("seen", finding.seen)]
        case .skipped(let text), .blocked(let text), .harness(let text): rows = [("reason", text)]
        }
        for note in result.notes { rows.append(("note", note)) }
        guard !rows.isEmpty else { return "" }
        rows.append(("section", result.info.section))
        if !result.info.covers.isEmpty {
            rows.append(("requirements", result.info.covers.joined(separator: " ")))
        }
        var text = "<dl>\n"
        for (name, value) in rows { text += "<dt>\(name)</dt><dd>\(Markup.escaped(value))</dd>\n" }
        if let command = result.command {
            text += "<dt>repeat with</dt><dd><code>\(Markup.escaped(command))</code></dd>\n"
        }
        text += "</dl>\n"
        if !result.transcript.isEmpty {
            let lines = result.transcript.map(TranscriptText.lines).joined()
            let more = result.omittedEvents > 0 ? "    … and \(result.omittedEvents) more events\n" : ""
            text += "<pre>\(Markup.escaped(lines + more))</pre>\n"
        }
        return text
    }

    private static func anchor(_ group: String) -> String { "section-" + Markup.escaped(group) }

    private static let style = """
        :root { color-scheme: light dark; --text: #1d2330; --faint: #5d6678; --page: #fbfbfc; --card: #fff; --line: #dfe3ea;
          --good: #0a6b39; --bad: #b3141d; --warn: #8a5a00; --link: #1a55c4; }
        @media (prefers-color-scheme: dark) { :root { --text: #e4e8f0; --faint: #9aa4b8; --page: #14171d; --card: #1b1f27;
          --line: #323846; --good: #5fd394; --bad: #ff8a8a; --warn: #f0c060; --link: #8ab4ff; } }
        * { box-sizing: border-box; }
        body { margin: 0 auto; max-width: 70rem; padding: 2rem 1.25rem 4rem; background: var(--page); color: var(--text);
          font: 16px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
        .kind { color: var(--faint); margin: 0; }
        .when { white-space: nowrap; }
        h1 { font-size: 1.5rem; margin: .2rem 0 .6rem; }
        h2 { font-size: 1.15rem; margin: 2.2rem 0 .4rem; }
        .verdict { font-size: 1.25rem; font-weight: 600; margin: 0 0 .4rem; }
        .good, .pass { color: var(--good); } .bad, .fail, .harness { color: var(--bad); }
        .unknown, .warn, .setup { color: var(--warn); } .skipped, .blocked, .none { color: var(--faint); }
        a { color: var(--link); }
        .wide { overflow-x: auto; }
        table { border-collapse: collapse; background: var(--card); margin: 1.2rem 0; }
        th, td { text-align: left; font-weight: normal; padding: .3rem .8rem; border: 1px solid var(--line);
          overflow-wrap: normal; }
        thead th, tfoot th, tfoot td { font-weight: 600; }
        table { overflow-wrap: normal; } .number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
        td.none { opacity: .45; }
        ul { list-style: none; margin: 0; padding: 0; border: 1px solid var(--line); background: var(--card); }
        li { padding: .35rem .8rem; border-top: 1px solid var(--line); } li:first-child { border-top: 0; }
        summary { cursor: pointer; list-style: none; } summary::-webkit-details-marker { display: none; }
        summary::after { content: " \u{25B8}"; color: var(--faint); } [open] > summary::after { content: " \u{25BE}"; }
        .mark { display: inline-block; min-width: 4.8rem; font-weight: 600; }
        .level { color: var(--faint); font-size: .85em; text-transform: uppercase; }
        code, pre { font: .875rem/1.45 ui-monospace, monospace; }
        dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: .6rem 0; }
        dt { color: var(--faint); } dd { margin: 0; }
        pre { overflow-x: auto; overflow-wrap: normal; border-left: 3px solid var(--line); padding: .2rem .8rem; margin: .6rem 0; }
        @media (max-width: 40rem) { body { padding: 1.25rem .75rem 3rem; } h1 { font-size: 1.2rem; }
          dl { grid-template-columns: 1fr; } dd + dt { margin-top: .4rem; } .mark { min-width: 0; }
          th, td { padding: .25rem .45rem; } thead .number { font-size: .8rem; } pre { font-size: .75rem; } }
        """
}
