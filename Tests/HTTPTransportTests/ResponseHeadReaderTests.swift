import HTTPSemantics
import Testing

@testable import HTTPTransport

@Suite struct HeadReaderTests {
    private func read(_ text: String) -> [ResponseHeadReader.Outcome] {
        var reader = ResponseHeadReader(base: RequestURI("http://host/"))
        var outcomes: [ResponseHeadReader.Outcome] = []
        var line: [UInt8] = []
        for byte in text.utf8 {
            line.append(byte)
            guard byte == 0x0A else { continue }
            let outcome = line.withUnsafeBytes { reader.read($0) }
            if case .more = outcome {} else { outcomes.append(outcome) }
            line = []
        }
        return outcomes
    }

    @Test("interim and final responses are read, and trailers are ignored")
    func interimFinalAndTrailers() throws {
        let outcomes = read(
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 104 \r\nUpload-Offset: 5\r\n\r\nHTTP/2 200\r\nA:  b \r\nLocation: x\r\nA: c\r\n\r\nA: d\r\n\r\n"
        )
        #expect(outcomes.count == 3)
        guard case .interim(let first) = outcomes[0], case .interim(let second) = outcomes[1],
            case .final(let final) = outcomes[2]
        else {
            Issue.record("\(outcomes)")
            return
        }
        #expect(first.status == 100 && second.status == 104 && second.fields["Upload-Offset"] == "5")
        #expect(final.status == 200 && final.version == "HTTP/2" && final.fields.values("A") == ["b", "c"])
        #expect(final.location == ResolvedLocation(uri: "http://host/x", relation: .sameOrigin))
    }

    @Test("a folded line continues the line before it (RFC 9112 section 5.2)")
    func folded() {
        let outcomes = read("HTTP/1.1 200 OK\r\nA: b\r\n  c\r\n\td\r\nB: e\n\r\n")
        guard case .final(let head)? = outcomes.first else {
            Issue.record("\(outcomes)")
            return
        }
        #expect(head.fields["A"] == "b c d" && head.fields["B"] == "e")
    }

    @Test(
        "an invalid status line and status 101 are refused",
        arguments: [
            "HTTP/1.1\r\n", "HTTP/1.1 20 OK\r\n", "HTTP/1.1 abc\r\n", "ICY 200 OK\r\n", "HTTP/1.1 101 X\r\n\r\n",
        ])
    func refused(text: String) {
        let outcomes = read(text)
        guard case .refused(.protocolViolation)? = outcomes.first else {
            Issue.record("\(outcomes)")
            return
        }
    }

    @Test("a header section of more than 256 KiB is refused, but any number of smaller header sections is read")
    func bound() {
        let field = "A: " + String(repeating: "a", count: 60_000) + "\r\n"
        let smaller = "HTTP/1.1 104 \r\n" + field + field + field + field + "\r\n"
        let outcomes = read(smaller + smaller + smaller + "HTTP/1.1 200 OK\r\n" + field + field + field + field + field)
        #expect(outcomes.count == 4)
        guard case .refused(.protocolViolation)? = outcomes.last else {
            Issue.record("\(outcomes.count)")
            return
        }
    }

    @Test("different values of Content-Length are a violation, repeated equal values are not (RFC 9110 section 8.6)")
    func lengths() {
        for (lines, isRefused) in [
            ("Content-Length: 5\r\nContent-Length: 6", true), ("Content-Length: 5, 6", true),
            ("Content-Length: 5\r\nContent-Length: 5", false), ("Content-Length: 5 , 5", false),
        ] {
            let outcome = read("HTTP/1.1 200 OK\r\n\(lines)\r\n\r\n").first
            if case .refused? = outcome { #expect(isRefused) } else { #expect(!isRefused) }
        }
    }
}
