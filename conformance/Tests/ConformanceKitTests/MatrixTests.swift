import Foundation
import Testing

@testable import ConformanceKit

/// Tests of the Markdown matrix of reports.
@Suite("Matrix")
struct MatrixTests {
    private func report(_ url: String, _ outcomes: [(String, Outcome)]) throws -> Data {
        let report = RunReport(
            url: url, method: "POST", base: .interop(6), supportedProfiles: [.interop(5), .interop(6)],
            isAnnouncing: true,
            limits: [:], download: nil, beganAt: 1_790_000_000, milliseconds: 1,
            results: outcomes.map { id, outcome in
                CaseResult(
                    info: CaseInfo(id, .must, "4.2", "A sentence."), outcome: outcome, notes: [],
                    transcript: [], omittedEvents: 0, command: nil, milliseconds: 1)
            }, failure: nil)
        return try JSONReport(report, strict: false).data()
    }

    private let unmet = Finding(expected: "a", seen: "b | c <d>\n`e`")

    @Test("The matrix has a row for each section and a column for each subject")
    func cells() throws {
        let first = try report(
            "http://a/", [("4.2/x", .pass), ("4.2/y", .fail(unmet)), ("4.4/x", .skipped("no")), ("14/x", .warn(unmet))])
        let second = try report(
            "http://b/", [("4.2/x", .pass), ("4.3/x", .blocked(by: "4.2/x")), ("4.4/x", .pass), ("14/x", .pass)])
        let text = try MarkdownMatrix([
            MatrixSubject(first, from: "a", name: "one"), MatrixSubject(second, from: "b", name: nil),
        ]).text
        let rows = text.split(separator: "\n").map(String.init)
        #expect(rows[0] == "| Section | one | http://b/ |")
        #expect(rows.contains("| tested on | 2026-09-21 | 2026-09-21 |"))
        #expect(rows.contains("| versions | 5, 6 | 5, 6 |"))
        #expect(rows.contains("| 4.2  Creation | 1/2 ✗1 | 1/1 |"))
        #expect(rows.contains("| 4.3  Offset retrieval | – | 0/1 ?1 |"))
        #expect(rows.contains("| 4.4  Append | – | 1/1 |"))
        #expect(rows.contains("| RFC 9110 14  Range downloads | 0/1 !1 | 1/1 |"))
        #expect(rows.contains("| **all** | **1/3 ✗1 !1** | **3/4 ?1** |"))
        #expect(rows.contains("- ✗ `4.2/y`: expected a, seen: b \\| c \\<d> \\`e\\`"))
        let places = ["4.2 ", "4.3 ", "4.4 ", "RFC 9110 14 "].map { title in
            rows.firstIndex { $0.hasPrefix("| \(title)") } ?? -1
        }
        #expect(places == places.sorted() && places[0] > 0)
    }

    @Test("A file that is not a report causes an error")
    func others() throws {
        let report = try #require(String(data: report("http://a/", [("4.2/x", .pass)]), encoding: .utf8))
        for (text, reason) in [
            ("", "it is not valid JSON"), ("{", "it is not valid JSON"), ("{}", "version is missing"),
            ("[]", "the document has the wrong type"), (#"{"version": "1"}"#, "version has the wrong type"),
            (#"{"version": 1, "mode": "proxy"}"#, "subject is missing"),
            (report.replacing(#""level""#, with: #""levels""#), "cases.0.level is missing"),
        ] {
            let failure = #expect(throws: RunFailure.self) {
                try MatrixSubject(Data(text.utf8), from: "file", name: "name")
            }
            let sentence = "file is not a JSON report of the server or client mode: \(reason)"
            #expect(failure?.description == sentence)
        }
        #expect(throws: RunFailure.self) { try MarkdownMatrix([]) }
    }
}
