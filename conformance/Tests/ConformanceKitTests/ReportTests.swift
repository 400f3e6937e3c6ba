import Foundation
import FoundationXML
import Testing

@testable import ConformanceKit

@Suite("Reports for programs and browsers")
struct ReportTests {
    private static let hostile = "<script>alert('x')</script> & \"]]>\" \u{0}\u{1B}[31m \u{202E}\u{FFFF}"

    private static let request = Array("GET /<x> HTTP/1.1\r\n\0\u{FF}".utf8)

    private func report(_ outcomes: [Outcome], failure: String? = nil) -> RunReport {
        RunReport(
            url: "http://localhost/" + Self.hostile, method: "POST", base: .interop(8),
            supportedProfiles: [.interop(8)],
            isAnnouncing: true, limits: [:], download: nil, beganAt: 1_790_000_000, milliseconds: 61_234,
            results: outcomes.enumerated().map { number, outcome in
                CaseResult(
                    info: CaseInfo("4.\(2 + number % 2)/case-\(number)", .must, "4.2", Self.hostile),
                    outcome: outcome, notes: [Self.hostile],
                    transcript: [
                        .init(time: 1234, connection: 1, event: .sent(Self.request, omitted: 0))
                    ],
                    omittedEvents: 3, command: "curl '\(Self.hostile)'", milliseconds: 17)
            }, failure: failure)
    }

    private func clientReport(_ outcomes: [Outcome]) -> ClientReport {
        let report = report(outcomes)
        return ClientReport(
            uploadCommand: "put \(Self.hostile)", downloadCommand: "get", seed: 7, beganAt: report.beganAt,
            milliseconds: report.milliseconds, results: report.results, traffic: [:], failure: nil)
    }

    private static let outcomes: [Outcome] = [
        .pass, .fail(Finding(expected: hostile, seen: hostile)), .warn(Finding(expected: "a", seen: "b")),
        .skipped(hostile), .blocked(by: "4.2/case-1"), .setup(Finding(expected: "c", seen: "d")), .harness(hostile),
    ]

    /// Counts elements, and throws if the document is not well-formed.
    private final class ElementCounter: NSObject, XMLParserDelegate {
        var counts: [String: Int] = [:]

        func parser(
            _ parser: XMLParser, didStartElement name: String, namespaceURI: String?, qualifiedName: String?,
            attributes: [String: String]
        ) {
            counts[name, default: 0] += 1
        }

        static func count(_ text: String) throws -> [String: Int] {
            let counter = ElementCounter()
            let parser = XMLParser(data: Data(text.utf8))
            parser.delegate = counter
            guard parser.parse() else { throw parser.parserError ?? CocoaError(.fileReadCorruptFile) }
            return counter.counts
        }
    }

    @Test("JUnit XML is well-formed for any text, and contains the number of cases with each outcome")
    func junit() throws {
        let text = JUnitReport(report(Self.outcomes), strict: false).text
        let counts = try ElementCounter.count(text)
        #expect(counts["testsuite"] == 2)
        #expect(counts["testcase"] == 7)
        #expect(counts["failure"] == 1)
        #expect(counts["error"] == 2)
        #expect(counts["skipped"] == 2)
        #expect(counts["system-out"] == 1)
        #expect(try ElementCounter.count(JUnitReport(report(Self.outcomes), strict: true).text)["failure"] == 2)
        #expect(
            try ElementCounter.count(JUnitReport(report([], failure: Self.hostile), strict: true).text)["error"] == 1)
    }

    @Test("JUnit, HTML and terminal reports can also be made for a client")
    func client() throws {
        let report = clientReport(Self.outcomes)
        #expect(report.exitStatus(strict: false) == 1)
        #expect(try ElementCounter.count(JUnitReport(report, strict: false).text)["testcase"] == 7)
        let page = HTMLReport(report, strict: false).text
        #expect(page.contains("conformance of a client") && page.contains("<br/>get</h1>") && page.contains("seed 7"))
        #expect(!page.contains("<script"))
        let text = TerminalReport(hasColors: false, width: 100).closing(report, strict: false)
        #expect(text.contains("get  seed 7\n7 cases in 61.2 s: 1 pass, 1 fail"))
        #expect(text.hasSuffix("Does not conform.\n"))
    }

    @Test("Reports do not contain credentials")
    func credentials() throws {
        let transcript = Transcript()
        let request = Request("GET", "/", [("Authorization", "Bearer s3cret"), ("cookie", "s3cret"), ("X", "kept")])
        transcript.sent(request.head(authority: "a"), on: 1)
        let endpoint = try #require(Endpoint("http://a/"))
        let command = try #require(CurlCommand(request, endpoint)).text
        for text in [transcript.entries.map { TranscriptText.lines(of: $0) }.joined(), command] {
            #expect(!text.contains("s3cret") && text.contains("kept"))
            #expect(text.contains("Authorization: (hidden)") && text.contains("cookie: (hidden)"))
        }
    }

    @Test("Control characters from a peer are escaped in terminal output and in tables")
    func controlCharacters() throws {
        let report = report(Self.outcomes, failure: Self.hostile)
        var terminal = TerminalReport(hasColors: false, width: 200)
        var text = report.results.map { terminal.line(of: $0) }.joined() + terminal.closing(report, strict: false)
        text += try MarkdownMatrix([
            MatrixSubject(try JSONReport(report, strict: false).data(), from: "a", name: Self.hostile)
        ])
        .text
        let controls = text.unicodeScalars.filter {
            $0 != "\n" && [.control, .format, .unassigned].contains($0.properties.generalCategory)
        }
        #expect(controls.isEmpty, "\(controls.map(\.value))")
        #expect(text.contains("\\x00\\x1b[31m \\u{202e}"))
    }

    @Test("The HTML page contains every case, no scripts, and no references to other documents")
    func html() throws {
        let text = HTMLReport(report(Self.outcomes, failure: Self.hostile), strict: false).text
        for number in Self.outcomes.indices { #expect(text.contains("case-\(number)")) }
        #expect(text.contains("Does not conform"))
        #expect(text.contains("GET /&lt;x&gt; HTTP/1.1"))
        #expect(!text.contains("<script") && !text.contains("src=") && !text.contains("url("))
        #expect(!text.unicodeScalars.contains { $0.value == 0 || $0.value == 0x1B })
        // Apart from its first line and void elements the page is XML, so every element is closed.
        let body = text.dropFirst(
            text.distance(from: text.startIndex, to: try #require(text.firstRange(of: "<body>")).lowerBound))
        _ = try ElementCounter.count(String(body.dropLast("</html>\n".count)))
        #expect(HTMLReport(report([.pass]), strict: false).text.contains("Conforms"))
    }
}
