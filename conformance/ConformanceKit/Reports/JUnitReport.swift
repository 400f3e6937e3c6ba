/// The report of a run as JUnit XML: a suite for each section, a test for each case.
///
/// A SHOULD that is not met is a failure with `strict`, otherwise a note. A case that could not be verified is an error.
package struct JUnitReport {
    package let text: String

    package init(_ report: some CaseReport, strict: Bool) {
        var text = #"<?xml version="1.0" encoding="UTF-8"?>"# + "\n"
        text += "<testsuites name=\"onward-conformance\" time=\"\(Self.seconds(report.milliseconds))\">\n"
        if let failure = report.failure {
            text += "  <testsuite name=\"run\" tests=\"1\" failures=\"0\" errors=\"1\" skipped=\"0\">\n"
            text +=
                "    <testcase classname=\"run\" name=\"verified\"><error message=\"\(Markup.escaped(failure))\"/></testcase>\n"
            text += "  </testsuite>\n"
        }
        for group in report.groups {
            let results = report.results.filter { $0.info.group == group }
            let kinds = results.map { Kind($0, strict: strict) }
            text += "  <testsuite name=\"\(Markup.escaped(SectionTitle.title(of: group)))\" tests=\"\(results.count)\""
            text += " failures=\"\(kinds.count { $0 == .failure })\" errors=\"\(kinds.count { $0 == .error })\""
            text += " skipped=\"\(kinds.count { $0 == .skipped })\""
            text += " time=\"\(Self.seconds(results.reduce(0) { $0 + $1.milliseconds }))\">\n"
            for (result, kind) in zip(results, kinds) { text += Self.test(result, kind) }
            text += "  </testsuite>\n"
        }
        self.text = text + "</testsuites>\n"
    }

    private enum Kind {
        case success, note, failure, error, skipped

        init(_ result: CaseResult, strict: Bool) {
            self =
                switch result.outcome {
                case .pass: .success
                case .fail: .failure
                case .warn: strict ? .failure : .note
                case .skipped, .blocked: .skipped
                case .setup, .harness: .error
                }
        }
    }

    private static func test(_ result: CaseResult, _ kind: Kind) -> String {
        var text = "    <testcase classname=\"\(Markup.escaped(result.info.group))\""
        text += " name=\"\(Markup.escaped(result.info.id))\" time=\"\(seconds(result.milliseconds))\""
        let message = Markup.escaped(result.outcome.summary ?? "")
        let proof = Markup.escaped(
            result.info.requirement + "\n" + result.transcript.map(TranscriptText.lines).joined())
        switch kind {
        case .success: return text + "/>\n"
        case .note: text += "><system-out>\(message)\n\(proof)</system-out>"
        case .failure: text += "><failure message=\"\(message)\">\(proof)</failure>"
        case .error: text += "><error message=\"\(message)\">\(proof)</error>"
        case .skipped: text += "><skipped message=\"\(message)\"/>"
        }
        return text + "</testcase>\n"
    }

    private static func seconds(_ milliseconds: Int64) -> String {
        "\(milliseconds / 1000).\(String(milliseconds % 1000 + 1000).dropFirst())"
    }
}
