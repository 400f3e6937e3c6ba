/// RFC 9112: where a request ends, and what is none.
enum FramingCases {
    static let heads: [Case] = [
        refusing(
            "length-and-coding", .must, "RFC 9112 6.1",
            "Content-Length beside Transfer-Encoding is refused, or the connection is closed after the response.",
            covers: "H11-01", ["Content-Length: 5", "Transfer-Encoding: chunked"], "5\r\nhello\r\n0\r\n\r\n",
            refusal: nil),
        refusing(
            "differing-lengths", .must, "RFC 9112 6.3", "Two different lengths are no length.", covers: "H11-02",
            ["Content-Length: 5", "Content-Length: 6"], "hello!"),
        refusing(
            "length-sign", .must, "RFC 9112 6.3", "A length has no sign.", covers: "H11-03", ["Content-Length: +5"],
            "hello"),
        refusing(
            "length-negative", .must, "RFC 9112 6.3", "A length is not negative.", covers: "H11-03",
            ["Content-Length: -1"], ""),
        refusing(
            "length-hexadecimal", .must, "RFC 9112 6.3", "A length is decimal.", covers: "H11-03",
            ["Content-Length: 0x5"], "hello"),
        refusing(
            "length-blank", .must, "RFC 9112 6.3", "A length is one number.", covers: "H11-03",
            ["Content-Length: 5 5"], "hello"),
        refusing(
            "length-huge", .must, "RFC 9112 6.3", "A length that no number holds does not wrap.", covers: "H11-03",
            ["Content-Length: 18446744073709551621"], "hello", refusal: 400...599, allowing: [.waiting, .goingOn]),
        refusing(
            "coding-not-last", .must, "RFC 9112 6.3", "The last transfer coding of a request is chunked.",
            covers: "H11-04", ["Transfer-Encoding: chunked, identity"], "5\r\nhello\r\n0\r\n\r\n"),
        refusing(
            "coding-unknown", .should, "RFC 9112 6.1", "An unknown transfer coding gets 501.",
            covers: "H11-05", ["Transfer-Encoding: foo, chunked"], "5\r\nhello\r\n0\r\n\r\n", refusal: 501...501,
            allowing: .goingOn),
        refusing(
            "coding-twice", .must, "RFC 9112 6.1", "Chunked is applied once: twice is refused, or taken for once.",
            covers: "H11-21",
            ["Transfer-Encoding: chunked, chunked"], "5\r\nhello\r\n0\r\n\r\n", allowing: [.goingOn, .success]),
        refusing(
            "coding-in-1.0", .must, "RFC 9112 6.1", "HTTP/1.0 has no transfer codings.", covers: "H11-06",
            ["Transfer-Encoding: chunked"], "5\r\nhello\r\n0\r\n\r\n", version: "HTTP/1.0", refusal: nil),
        refusing(
            "space-before-colon", .must, "RFC 9112 5.1", "No white space stands before a colon.", covers: "H11-07",
            ["Content-Length : \(request.utf8.count)"], request, allowing: .goingOn),
        refusing(
            "nul", .must, "RFC 9110 5.5", "A NUL in a field value is refused, or read as a space.", covers: "H11-22",
            ["X-Test: a\u{0}b", length], request, allowing: [.goingOn, .success]),
        refusing(
            "bare-cr", .must, "RFC 9112 2.2", "A CR alone in a field value is refused, or read as a space.",
            covers: "H11-22", ["X-Test: a\rb", length], request, allowing: [.goingOn, .success]),
        hiding(
            "nul-hides", "RFC 9110 5.5", "A field value does not end before a NUL.", "Upload-Offset: 0\u{0}7"),
        hiding(
            "bare-cr-hides", "RFC 9112 2.2", "What stands behind a CR alone is no field.",
            "X-Test: a\rUpload-Offset: 0"),
        refusing(
            "no-host", .must, "RFC 9112 3.2", "A request without Host is bad.", covers: "H11-09", [length], request,
            hasHost: false, allowing: .goingOn),
        refusing(
            "two-hosts", .must, "RFC 9112 3.2", "A request with two Hosts is bad.", covers: "H11-09",
            ["Host: example.org", length], request, allowing: .goingOn),
        refusing(
            "bad-host", .must, "RFC 9112 3.2", "A Host that is none is bad.", covers: "H11-09",
            ["Host: a b", length], request, hasHost: false, allowing: .goingOn),
        Case(
            "9112/folding", .must, "RFC 9112 5.2", "A folded field line is refused, or read as one with spaces.",
            covers: "H11-08", needs: ["4.2/whole"]
        ) { t in
            let answer = try t.answer(["X-Test: a", " b", "Content-Length: \(t.part)"], t.bytes(t.part))
            try t.expect(answer == nil || answer?.status != 500, "400, or success", answer?.summary ?? "")
            try t.expect(
                answer == nil || answer?.isSuccessful == true || answer?.isRefusal == true, "400, or success",
                answer?.summary ?? "")
        },
        Case(
            "9112/absolute-form", .must, "RFC 9112 3.2.2", "A target in absolute form is that of its path.",
            covers: "H11-26", needs: ["4.2/whole"]
        ) { t in
            var request = t.creation(complete: true, .bytes(t.bytes(t.part)))
            request.target = "\(t.subject.endpoint.scheme)://\(t.subject.endpoint.authority)\(request.target)"
            try t.expectSuccess(t.exchange(request), "to a target in absolute form")
        },
        Case(
            "9112/long-target", .should, "RFC 9110 15.5.15", "A target that is too long is refused by 414.",
            covers: "H11-18", needs: ["4.2/create-empty"]
        ) { t in
            let target = "/" + String(repeating: "a", count: 1 << 20)
            try t.expectLimited(Array("GET \(target) HTTP/1.1\r\nHost: a\r\n\r\n".utf8), [414, 400, 431])
        },
        Case(
            "9112/long-head", .should, "RFC 6585 5", "A head that is too long is refused by 431.", covers: "H11-18",
            needs: ["4.2/create-empty"]
        ) { t in
            let head = "OPTIONS * HTTP/1.1\r\nHost: a\r\nX-Test: " + String(repeating: "a", count: 1 << 20) + "\r\n\r\n"
            try t.expectLimited(Array(head.utf8), [431, 400, 413])
        },
    ]

    static let chunks: [Case] = [
        refusing(
            "chunk-overflow", .must, "RFC 9112 7.1", "A chunk size that no number holds does not wrap.",
            covers: "H11-10", ["Transfer-Encoding: chunked"], "10000000000000005\r\nhello\r\n0\r\n\r\n",
            refusal: 400...599, allowing: [.waiting, .goingOn]),
        refusing(
            "chunk-negative", .must, "RFC 9112 7.1", "A chunk size has no sign.", covers: "H11-10",
            ["Transfer-Encoding: chunked"], "-1\r\nhello\r\n0\r\n\r\n"),
        refusing(
            "chunk-empty-size", .must, "RFC 9112 7.1", "A chunk has a size.", covers: "H11-10",
            ["Transfer-Encoding: chunked"], "\r\nhello\r\n0\r\n\r\n"),
        refusing(
            "chunk-no-number", .must, "RFC 9112 7.1", "A chunk size is hexadecimal.", covers: "H11-10",
            ["Transfer-Encoding: chunked"], "xyz\r\nhello\r\n0\r\n\r\n"),
        refusing(
            "chunk-without-end", .must, "RFC 9112 7.1", "A line ends after the bytes of a chunk.", covers: "H11-17",
            ["Transfer-Encoding: chunked"], "5\r\nhelloo\r\n0\r\n\r\n"),
        refusing(
            "chunk-bare-lf", .should, "RFC 9112 2.2", "A line of a chunk does not end with LF alone.", covers: "H11-23",
            ["Transfer-Encoding: chunked"], "5\nhello\n0\n\n"),
        Case(
            "9112/chunk-extension", .must, "RFC 9112 7.1.1", "An unknown chunk extension is ignored.",
            covers: "H11-11", needs: ["4.2/chunked-whole"]
        ) { t in
            let content = t.bytes(t.part)
            let size = String(content.count, radix: 16)
            let body = Array("\(size);a=b;c=\"d\"\r\n".utf8) + content + Array("\r\n0;x\r\n\r\n".utf8)
            let answer = try t.answer(["Transfer-Encoding: chunked"], body)
            try t.expect(answer?.isSuccessful == true, "2xx", answer?.summary ?? "the end of the connection")
        },
        Case(
            "9112/endless-extension", .should, "RFC 9112 7.1.1", "Chunk extensions are bounded.", covers: "H11-11",
            needs: ["4.2/chunked-whole"]
        ) { t in
            let body = Array(("5;" + String(repeating: "a", count: 1 << 20) + "\r\nhello\r\n0\r\n\r\n").utf8)
            let answer = try t.answer(["Transfer-Encoding: chunked"], body)
            try t.expect(answer?.isSuccessful != true, "a refusal", answer?.summary ?? "")
        },
    ]

    /// Content that would be read as a request by a server that does not treat it as content.
    private static let request = "OPTIONS / HTTP/1.1\r\nHost: a\r\n\r\n"
    private static let length = "Content-Length: \(request.utf8.count)"

    /// A creation with these field lines and this content is refused: by a status of `refusal`, or by the end of the
    /// connection without a response. With nil any status is right.
    ///
    /// The connection is closed, as the end of the content is unknown, unless a case allows otherwise.
    private static func refusing(
        _ name: String, _ level: Level, _ section: String, _ requirement: String, covers: String, _ lines: [String],
        _ content: String, version: String = "HTTP/1.1", hasHost: Bool = true,
        refusal: ClosedRange<Int>? = 400...499, allowing leniency: Leniency = []
    ) -> Case {
        Case("9112/\(name)", level, section, requirement, covers: covers, needs: ["4.2/whole"]) { t in
            let answers = try t.answers(
                to: lines, Array(content.utf8), version: version, hasHost: hasHost, allowing: leniency)
            guard let first = answers.first else { return }
            if let refusal, !(leniency.contains(.success) && first.isSuccessful) {
                try t.expect(
                    refusal.contains(first.status) || (level == .must && [501, 505].contains(first.status)),
                    refusal == 501...501 ? "501" : "400", first.summary)
            }
            guard leniency.contains(.goingOn) else {
                return try t.expect(
                    answers.isEnded, "the end of the connection behind \(first.status)",
                    "it stays open, or more is answered")
            }
            // The one request behind the content may be answered; of content without an end it is a part.
            let most = leniency.contains(.waiting) ? 1 : 2
            try t.expect(answers.count <= most, "no answer to content", "\(answers.count) answers")
            if first.isSuccessful, let second = answers.second {
                try t.expect(
                    second.status != 400, "an answer to the request behind the content", second.summary)
            }
        }
    }

    /// An append whose only offset is in a line that has to be refused, or read otherwise, is refused.
    private static func hiding(_ name: String, _ section: String, _ requirement: String, _ line: String) -> Case {
        Case("9112/\(name)", .must, section, requirement, covers: "H11-22", needs: ["4.4/append"]) { t in
            let upload = try t.newUpload()
            let bare = t.append(upload, at: 0, complete: false, .bytes(t.bytes(t.part))).without("Upload-Offset")
            if try t.exchange(bare, with: upload).isSuccessful { throw t.skip("appends need no Upload-Offset") }
            let parts = line.split(separator: ":", maxSplits: 1).map(String.init)
            let request = bare.with(parts[0], String(parts[1].dropFirst()))
            let connection = try t.connect(to: upload.endpoint)
            t.remember(request, upload.endpoint)
            try connection.send(request)
            guard let answer = try connection.readResponseUnlessEnded() else { return }
            try t.expect(!answer.isSuccessful, "a refusal, or the end of the connection", answer.summary)
        }
    }
}
