import HTTPSemantics
import TestSupport
import Testing

@Suite struct MessageFramingTests {
    private func evaluate(
        _ lines: [(String, String)], host: Bool = true, version: ProtocolVersion = .http11
    ) -> Result<MessageFraming, FramingRefusal> {
        let fields = Fields((host ? [("Host", "example.com")] : []) + lines)
        return MessageFraming.evaluate(RequestHead(method: .post, target: "/", version: version, fields: fields))
    }

    private func refusal(
        _ lines: [(String, String)], host: Bool = true, version: ProtocolVersion = .http11
    ) -> FramingRefusal? {
        if case .failure(let refusal) = evaluate(lines, host: host, version: version) { refusal } else { nil }
    }

    @Test("valid lengths and the chunked coding are accepted")
    func acceptedFraming() {
        #expect(evaluate([]) == .success(.none))
        #expect(evaluate([("Content-Length", "0")]) == .success(.length(0)))
        #expect(evaluate([("content-length", " 42 ")]) == .success(.length(42)))
        #expect(evaluate([("Content-Length", "0005")]) == .success(.length(5)))
        #expect(evaluate([("Content-Length", "9223372036854775807")]) == .success(.length(.max)))
        #expect(evaluate([("Transfer-Encoding", "Chunked")]) == .success(.chunked))
        #expect(evaluate([("Content-Length", "5")], version: .http10) == .success(.length(5)))
        #expect(evaluate([], version: ProtocolVersion(major: 1, minor: 2)) == .success(.none))
    }

    @Test("H11-01: Transfer-Encoding with Content-Length is refused")
    func both() {
        let refusal = refusal([("Transfer-Encoding", "chunked"), ("Content-Length", "5")])
        #expect(refusal?.status == .badRequest)
        #expect(refusal?.code == "content-length-with-transfer-encoding")
    }

    @Test("H11-02: different Content-Length values are refused, identical ones count as one")
    func severalLengths() {
        #expect(refusal([("Content-Length", "5"), ("Content-Length", "6")])?.code == "conflicting-content-length")
        #expect(refusal([("Content-Length", "5, 6")])?.code == "conflicting-content-length")
        #expect(refusal([("Content-Length", "5, 05")])?.code == "conflicting-content-length")
        #expect(evaluate([("Content-Length", "5"), ("Content-Length", "5")]) == .success(.length(5)))
        #expect(evaluate([("Content-Length", "5 ,5")]) == .success(.length(5)))
    }

    @Test(
        "H11-03: Content-Length must be digits only",
        arguments: [
            "+5", "-1", "0x5", "5 5", "", ",", "5,", ",5", "5,,5", "5.0", "5;a", "5a", "\u{0665}", "1e3", "\"5\"",
        ])
    func malformedLength(value: String) {
        let refusal = refusal([("Content-Length", value)])
        #expect(refusal?.status == .badRequest)
        #expect(refusal?.code == "invalid-content-length")
    }

    @Test(
        "H11-03: a Content-Length beyond 64 bit is refused",
        arguments: [
            "9223372036854775808", "18446744073709551616", "1000000000000000000000000000000",
        ])
    func overflowingLength(value: String) {
        let refusal = refusal([("Content-Length", value)])
        #expect(refusal?.status == .contentTooLarge)
        #expect(refusal?.code == "content-length-overflow")
    }

    @Test(
        "H11-04: a last coding other than chunked is refused",
        arguments: [
            "chunked, identity", "identity", "gzip", "chunked, foo", "xchunked",
        ])
    func chunkedNotFinal(value: String) {
        let refusal = refusal([("Transfer-Encoding", value)])
        #expect(refusal?.status == .badRequest)
        #expect(refusal?.code == "chunked-not-final")
    }

    @Test(
        "H11-05: an unknown coding before chunked gets 501",
        arguments: [
            ["foo, chunked"], ["gzip,chunked"], ["identity", "chunked"], ["foo;a=\"x, y\", chunked"],
        ])
    func unknownCoding(lines: [String]) {
        let refusal = refusal(lines.map { ("Transfer-Encoding", $0) })
        #expect(refusal?.status == .notImplemented)
        #expect(refusal?.code == "unknown-transfer-coding")
    }

    @Test("H11-06: Transfer-Encoding in HTTP/1.0 is refused")
    func oldVersion() {
        #expect(refusal([("Transfer-Encoding", "chunked")], version: .http10)?.code == "transfer-encoding-in-old-http")
    }

    @Test(
        "H11-07: field names that are no tokens are refused",
        arguments: [
            "Content-Length ", "Transfer-Encoding\t", " Content-Length", "", "a b", "\u{0}", "x:",
        ])
    func malformedName(name: String) {
        let refusal = refusal([(name, "5")])
        #expect(refusal?.status == .badRequest)
        #expect(refusal?.code == "invalid-field-name")
    }

    @Test(
        "H11-08 H11-22: folded lines, bare CR, NUL and control characters in values are refused",
        arguments: [
            "a\r\n b", "a\rb", "a\nb", "a\0", "\u{1}", "x\u{7F}",
        ])
    func malformedValue(value: String) {
        let refusal = refusal([("X", value)])
        #expect(refusal?.status == .badRequest)
        #expect(refusal?.code == "invalid-field-value")
    }

    @Test("H11-09: a missing, repeated or invalid Host is refused")
    func host() {
        #expect(refusal([], host: false)?.code == "missing-host")
        #expect(refusal([("Host", "example.com")])?.code == "repeated-host")
        #expect(refusal([("Host", "example.com")], version: .http10)?.code == "repeated-host")
        for value in ["", "a b", "a/b", "user@host", "host:port", "[::1", "a, b"] {
            #expect(refusal([("Host", value)], host: false)?.code == "invalid-host")
        }
        #expect(evaluate([], host: false, version: .http10) == .success(.none))
        #expect(evaluate([("Host", "[::1]:8080")], host: false) == .success(.none))
        #expect(refusal([], host: false)?.status == .badRequest)
    }

    @Test(
        "H11-21: chunked applied twice is refused",
        arguments: [
            ["chunked, chunked"], ["chunked", "chunked"], ["chunked, foo, chunked"], ["Chunked,CHUNKED"],
        ])
    func chunkedTwice(lines: [String]) {
        let refusal = refusal(lines.map { ("Transfer-Encoding", $0) })
        #expect(refusal?.status == .badRequest)
        #expect(refusal?.code == "chunked-repeated")
    }

    @Test(arguments: [
        "", ",", ",chunked", "chunked,", "chunked;a=b", "chunked;", "chunked ;", "chunked chunked", "\"chunked\"",
        "chunked\u{A0}",
        "=chunked", "foo;a, chunked",
    ])
    func malformedCoding(value: String) {
        let refusal = refusal([("Transfer-Encoding", value)])
        #expect(refusal?.status == .badRequest)
        #expect(refusal?.code == "invalid-transfer-encoding")
    }

    @Test("a major version other than 1 gets 505")
    func otherMajorVersion() {
        #expect(refusal([], version: ProtocolVersion(major: 2, minor: 0))?.status == .httpVersionNotSupported)
    }

    @Test(arguments: SeededGenerator.seeds)
    func arbitraryFieldsNeverCrash(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let names = ["Content-Length", "Transfer-Encoding", "Host", "X", "content-length "]
        let values = ["5", "chunked", "gzip", "a", ",", " ", ";", "=", "\"", "9", "é", "\u{1}", ":", "[", "]", "0"]
        for _ in 0..<SeededGenerator.count(3_000) {
            var fields = Fields()
            for _ in 0..<Int.random(in: 0...4, using: &generator) {
                let value = (0..<Int.random(in: 0...5, using: &generator)).map { _ in
                    values.randomElement(using: &generator) ?? ""
                }
                fields.append(names.randomElement(using: &generator) ?? "X", value.joined())
            }
            let head = RequestHead(method: .put, target: "/", fields: fields)
            switch MessageFraming.evaluate(head) {
            case .success(.length(let length)):
                #expect(length >= 0 && !fields.contains("Transfer-Encoding"))
            case .success(.chunked):
                #expect(!fields.contains("Content-Length") && fields["Transfer-Encoding"]?.lowercased() == "chunked")
            case .success(.none):
                #expect(!fields.contains("Content-Length") && !fields.contains("Transfer-Encoding"))
            case .failure(let refusal):
                #expect(refusal.status.isClientError || refusal.status.isServerError)
            }
        }
    }
}
