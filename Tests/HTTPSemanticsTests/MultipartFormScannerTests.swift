import TestSupport
import Testing

@testable import HTTPSemantics

/// Forms (RFC 7578), well-formed and hostile, in pieces of any size.
@Suite("Multipart forms")
struct MultipartFormScannerTests {
    private typealias Part = MultipartFormScanner.Part
    private static let rounds = SeededGenerator.count(2000)

    /// The result of scanning `form` in pieces that end at `cuts`.
    private func scan(
        _ form: [UInt8], boundary: String = "AB", cuts: [Int] = [], maxParts: Int = 100, maxHeadSize: Int = 1000
    ) -> Result<[Part], FormError> {
        var scanner = MultipartFormScanner(boundary: boundary, maxParts: maxParts, maxHeadSize: maxHeadSize)
        var start = 0
        for end in cuts + [form.count] where end >= start {
            let error = form[start..<end].withUnsafeBytes { bytes -> FormError? in
                do throws(FormError) { try scanner.scan(bytes) } catch { return error }
                return nil
            }
            if let error { return .failure(error) }
            start = end
        }
        do throws(FormError) { return .success(try scanner.finish()) } catch { return .failure(error) }
    }

    private func scan(
        _ form: String, boundary: String = "AB", maxParts: Int = 100, maxHeadSize: Int = 1000
    ) -> Result<[Part], FormError> {
        scan(Array(form.utf8), boundary: boundary, maxParts: maxParts, maxHeadSize: maxHeadSize)
    }

    private func contents(_ form: [UInt8], _ parts: [Part]) -> [String] {
        parts.map { String(decoding: form[Int($0.content.lowerBound)..<Int($0.content.upperBound)], as: UTF8.self) }
    }

    private func contents(_ form: String, boundary: String = "AB") throws -> [String] {
        contents(Array(form.utf8), try scan(form, boundary: boundary).get())
    }

    private static let disposition = "Content-Disposition: form-data; name=\"n\"\r\n"

    @Test("A form of a browser has the same parts, whatever pieces it arrives in")
    func browser() throws {
        let form = Array(
            ("ignored\r\n--AB\r\nContent-Disposition: form-data; name=\"title\"\r\n\r\nGrüße\r\n"
                + "--AB \t\r\ncontent-disposition: form-data; name=\"file\"; filename=\"a \\\"b\\\" %22c%22 d\\e.txt\"\r\n"
                + "Content-Type: text/html\r\n\r\n<p>\r\n--A\r\n--ABC\r\n--AB-\r\n\r\n"
                + "\r\n--AB--\r\nignored\r\n--AB\r\n").utf8)
        let expected = scan(form)
        let parts = try expected.get()
        #expect(contents(form, parts) == ["Grüße", "<p>\r\n--A\r\n--ABC\r\n--AB-\r\n\r\n"])
        #expect(parts.map(\.head.name) == ["title", "file"])
        #expect(parts.map(\.head.filename) == [nil, "a \"b\" \"c\" d\\e.txt"])
        #expect(parts[1].head.fields["Content-Type"] == "text/html")
        for cut in 0...form.count { #expect(scan(form, cuts: [cut]) == expected, "cut at \(cut)") }
        #expect(scan(form, cuts: Array(0...form.count)) == expected)
    }

    @Test("The first delimiter, empty parts and the last delimiter are recognized")
    func edges() throws {
        let head = Self.disposition
        #expect(try contents("--AB\r\n\(head)\r\nx\r\n--AB--") == ["x"])
        #expect(try contents("--AB\r\n\(head)\r\nx\r\n--AB-- \t\r\n") == ["x"])
        #expect(try contents("--AB\r\n\(head)\r\n\r\n--AB--") == [""])
        // The line end of the empty line is also the line end before the delimiter.
        #expect(try contents("--AB\r\n\(head)\r\n--AB--") == [""])
        #expect(try contents("--AB--") == [])
        #expect(try contents("--AB\r\n\(head)\r\n--AB x\r\n--AB--x\r\n\r\r\n--AB--") == ["--AB x\r\n--AB--x\r\n\r"])
        #expect(try contents("--AB\r\n\(head)\r\nx\r\n--AB\r\r\n--AB--") == ["x\r\n--AB\r"])
        #expect(try contents("x--AB\r\n\r\n--AB--") == [])
    }

    @Test(
        "A form without its end, or with a malformed part, is refused",
        arguments: [
            "", "x", "--AB", "--AB\r\n", "--AB\r\n\(disposition)\r\nx", "--AB\r\n\(disposition)\r\nx\r\n--AB",
            "--AB\r\n\(disposition)\r\nx\r\n--AB-", "--AB\r\n\(disposition)\r\nx\r\n--AB--x",
            "--AB\r\n\(disposition)\r\nx\r\n--AB--\r", "--AB\r\n\(disposition)\r\nx\n--AB--",
            "--AB\r\n\r\nx\r\n--AB--", "--AB\r\nContent-Type: text/plain\r\n\r\nx\r\n--AB--",
            "--AB\r\n\(disposition)\(disposition)\r\nx\r\n--AB--",
            "--AB\r\nContent-Disposition: attachment; name=\"n\"\r\n\r\nx\r\n--AB--",
            "--AB\r\nContent-Disposition: form-data; filename=\"n\"\r\n\r\nx\r\n--AB--",
            "--AB\r\nContent-Disposition: form-data; name=\"n\"; name=\"m\"\r\n\r\nx\r\n--AB--",
            "--AB\r\nContent-Disposition: form-data; name=\"n\r\n\r\nx\r\n--AB--",
            "--AB\r\nContent-Disposition: form-data; name=\"n\" x\r\n\r\nx\r\n--AB--",
            "--AB\r\n\(disposition) folded\r\n\r\nx\r\n--AB--", "--AB\r\nX\r\n\(disposition)\r\nx\r\n--AB--",
            "--AB\r\n\(disposition)A: \0\r\n\r\nx\r\n--AB--", "--AB\r\n\(disposition)A: b\nC: d\r\n\r\nx\r\n--AB--",
            "--AB\r\n\(disposition)A: b\rC: d\r\n\r\nx\r\n--AB--",
            "--AB\r\n\(disposition)Content-Transfer-Encoding: base64\r\n\r\nx\r\n--AB--",
        ])
    func malformed(form: String) {
        guard case .failure(.malformed) = scan(form) else {
            Issue.record("\(form): \(scan(form))")
            return
        }
    }

    @Test("Names that are not UTF-8 are refused")
    func encoding() {
        let form =
            Array("--AB\r\nContent-Disposition: form-data; name=\"".utf8) + [0xFF]
            + Array("\"\r\n\r\nx\r\n--AB--".utf8)
        guard case .failure(.malformed) = scan(form) else {
            Issue.record("\(scan(form))")
            return
        }
    }

    @Test("The number of parts and the size of their heads are limited")
    func limits() throws {
        let part = "--AB\r\n\(Self.disposition)\r\nx\r\n"
        let three = part + part + part + "--AB--"
        #expect(try scan(three, maxParts: 3).get().count == 3)
        #expect(scan(three, maxParts: 2) == .failure(.tooManyParts(limit: 2)))
        #expect(scan("--AB\r\n", maxParts: 0) == .failure(.tooManyParts(limit: 0)))
        let size = Self.disposition.utf8.count + 2
        #expect(try scan(three, maxHeadSize: size).get().count == 3)
        #expect(scan(three, maxHeadSize: size - 1) == .failure(.headTooLarge(limit: size - 1)))
        let endless = "--AB\r\nX: " + String(repeating: "x", count: 100_000)
        #expect(scan(endless, maxHeadSize: 5000) == .failure(.headTooLarge(limit: 5000)))
    }

    @Test("The boundary is read from Content-Type")
    func boundary() {
        func boundary(_ value: String) -> String? { MultipartFormScanner.boundary(ofContentType: value) }
        #expect(boundary("multipart/form-data; boundary=AB") == "AB")
        #expect(boundary("Multipart/Form-Data; charset=utf-8; Boundary=\"A B'()+_,-./:=?\"") == "A B'()+_,-./:=?")
        let longest = String(repeating: "x", count: 70)
        #expect(boundary("multipart/form-data; boundary=\(longest)") == longest)
        for value in [
            "multipart/form-data", "multipart/form-data; boundary=", "multipart/form-data; boundary=\"\"",
            "multipart/form-data; boundary=x\(longest)", "multipart/form-data; boundary=\"A \"",
            "multipart/form-data; boundary=A; boundary=B", "multipart/form-data; boundary=\"A\\\"B\"",
            "multipart/mixed; boundary=AB", "text/plain", "",
        ] { #expect(boundary(value) == nil, "\(value)") }
    }

    // MARK: Generated forms

    /// Text of characters from which delimiters are made.
    private func text(_ generator: inout SeededGenerator, boundary: String, atMost length: Int) -> [UInt8] {
        let pieces: [[UInt8]] = [
            [0x0D], [0x0A], [0x0D, 0x0A], [0x2D], [0x2D, 0x2D], Array(boundary.utf8), Array(boundary.utf8.dropLast()),
            Array("\r\n--\(boundary)".utf8), Array("\r\n--\(boundary)x".utf8), [0x20], [0x78],
        ]
        return (0..<Int.random(in: 0...length, using: &generator)).flatMap { _ in generator.pick(pieces) }
    }

    private func cuts(_ generator: inout SeededGenerator, _ count: Int) -> [Int] {
        (0..<Int.random(in: 0...5, using: &generator)).map { _ in Int.random(in: 0...count, using: &generator) }
            .sorted()
    }

    /// Whether a line of `content` is a delimiter, if the content is preceded by a line end.
    private func hasDelimiter(_ content: [UInt8], _ boundary: String) -> Bool {
        let lines = Array("\r\n".utf8) + content + Array("\r\n".utf8)
        let delimiter = Array("\r\n--\(boundary)".utf8)
        return lines.indices.contains { start in
            guard lines[start...].starts(with: delimiter) else { return false }
            var remaining = lines[(start + delimiter.count)...]
            if remaining.starts(with: [0x2D, 0x2D]) { remaining = remaining.dropFirst(2) }
            remaining = remaining.drop { $0 == 0x20 || $0 == 0x09 }
            return remaining.starts(with: [0x0D, 0x0A])
        }
    }

    @Test("The parts of generated forms are found, whatever their content and the pieces are", arguments: 0..<8)
    func generated(part: Int) throws {
        var generator = SeededGenerator.part(part)
        for _ in 0..<Self.rounds {
            let boundary = generator.pick(["A", "AB", "--", "-", "A-", "x'(A)", "AAB"])
            var form = text(&generator, boundary: boundary, atMost: 3)
            if hasDelimiter(form, boundary) { form = [] }
            if !form.isEmpty { form += Array("\r\n".utf8) }
            var expected: [String] = []
            for _ in 0..<Int.random(in: 0...4, using: &generator) {
                var content = text(&generator, boundary: boundary, atMost: 8)
                if hasDelimiter(content, boundary) { content = [] }
                expected.append(String(decoding: content, as: UTF8.self))
                form += Array("--\(boundary)\r\n\(Self.disposition)\r\n".utf8) + content + Array("\r\n".utf8)
            }
            form += Array("--\(boundary)--".utf8)
            let entire = scan(form, boundary: boundary)
            let description = "\(boundary): \(String(decoding: form, as: UTF8.self).debugDescription)"
            #expect(contents(form, try entire.get()) == expected, "\(description)")
            let cuts = cuts(&generator, form.count)
            #expect(scan(form, boundary: boundary, cuts: cuts) == entire, "\(cuts) \(description)")
        }
    }

    @Test("The result for a damaged form does not depend on its pieces, and all parts are within it", arguments: 0..<8)
    func damaged(part: Int) throws {
        var generator = SeededGenerator.part(100 + part)
        for _ in 0..<Self.rounds {
            let boundary = generator.pick(["A", "AB", "-"])
            var form: [UInt8] = []
            for _ in 0..<Int.random(in: 1...4, using: &generator) {
                form += Array("\r\n--\(boundary)\r\n\(Self.disposition)\r\n".utf8)
                form += text(&generator, boundary: boundary, atMost: 6)
            }
            form += Array("\r\n--\(boundary)--\r\n".utf8)
            for _ in 0..<Int.random(in: 0...4, using: &generator) {
                let index = Int.random(in: 0..<form.count, using: &generator)
                switch Int.random(in: 0..<3, using: &generator) {
                case 0: form.remove(at: index)
                case 1: form[index] = generator.pick([0, 0x0D, 0x0A, 0x2D, 0x41, 0x22, 0x5C, 0xFF])
                default: form = Array(form[..<(index + 1)])
                }
                if form.isEmpty { break }
            }
            let entire = scan(form, boundary: boundary, maxParts: 5, maxHeadSize: 80)
            let single = scan(form, boundary: boundary, cuts: Array(0...form.count), maxParts: 5, maxHeadSize: 80)
            #expect(single == entire, "\(form)")
            guard case .success(let parts) = entire else { continue }
            var end: Int64 = 0
            for part in parts {
                #expect(part.content.lowerBound >= end && part.content.upperBound <= Int64(form.count))
                end = part.content.upperBound
            }
        }
    }
}
