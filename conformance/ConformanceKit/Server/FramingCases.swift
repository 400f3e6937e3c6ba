/// RFC 9112: framing of requests, and malformed requests.
enum FramingCases {
    static let heads: [Case] = [
        refusing(
            "length-and-coding", .must, "RFC 9112 6.1",
            "A request with Content-Length and Transfer-Encoding is refused, or the connection is closed after the response.",
            covers: "H11-01", ["Content-Length: 5", "Transfer-Encoding: chunked"], "5\r\nhello\r\n0\r\n\r\n",
            refusal: nil),
        refusing(
            "differing-lengths", .must, "RFC 9112 6.3",
            "A request with two different values of Content-Length is refused.", covers: "H11-02",
            ["Content-Length: 5", "Content-Length: 6"], "hello!"),
        refusing(
            "equal-lengths", .must, "RFC 9112 6.3", "Two equal values of Content-Length are refused, or count as one.",
            covers: "H11-02", [length, length], request, allowing: [.openConnection, .success]),
        refusing(
            "length-sign", .must, "RFC 9112 6.3", "A Content-Length with a plus sign is refused.", covers: "H11-03",
            ["Content-Length: +5"],
            "hello"),
        refusing(
            "length-negative", .must, "RFC 9112 6.3", "A negative Content-Length is refused.", covers: "H11-03",
            ["Content-Length: -1"], ""),
        refusing(
            "length-hexadecimal", .must, "RFC 9112 6.3", "A hexadecimal Content-Length is refused.", covers: "H11-03",
            ["Content-Length: 0x5"], "hello"),
        refusing(
            "length-blank", .must, "RFC 9112 6.3", "A Content-Length with a space between digits is refused.",
            covers: "H11-03",
            ["Content-Length: 5 5"], "hello"),
        refusing(
            "length-huge", .must, "RFC 9112 6.3", "A Content-Length beyond 64 bits does not wrap around.",
            covers: "H11-03",
            ["Content-Length: 18446744073709551621"], "hello", refusal: 400...599,
            allowing: [.waiting, .openConnection]),
        refusing(
            "coding-not-last", .must, "RFC 9112 6.3", "A request whose last transfer coding is not chunked is refused.",
            covers: "H11-04", ["Transfer-Encoding: chunked, identity"], "5\r\nhello\r\n0\r\n\r\n"),
        refusing(
            "coding-unknown", .should, "RFC 9112 6.1", "An unknown transfer coding gets 501.",
            covers: "H11-05", ["Transfer-Encoding: foo, chunked"], "5\r\nhello\r\n0\r\n\r\n", refusal: 501...501,
            allowing: .openConnection),
        refusing(
            "coding-twice", .must, "RFC 9112 6.1", "A repeated chunked coding is refused, or handled as one.",
            covers: "H11-21",
            ["Transfer-Encoding: chunked, chunked"], "5\r\nhello\r\n0\r\n\r\n", allowing: [.openConnection, .success]),
        refusing(
            "coding-in-1.0", .must, "RFC 9112 6.1",
            "After an HTTP/1.0 request with Transfer-Encoding the connection is closed.", covers: "H11-06",
            ["Transfer-Encoding: chunked"], "5\r\nhello\r\n0\r\n\r\n", version: "HTTP/1.0", refusal: nil),
        refusing(
            "space-before-colon", .must, "RFC 9112 5.1", "White space between a field name and the colon is refused.",
            covers: "H11-07",
            ["Content-Length : \(request.utf8.count)"], request, allowing: .openConnection),
        refusing(
            "nul", .must, "RFC 9110 5.5", "A NUL in a field value is refused, or handled as a space.", covers: "H11-22",
            ["X-Test: a\u{0}b", length], request, allowing: [.openConnection, .success]),
        refusing(
            "bare-cr", .must, "RFC 9112 2.2", "A bare CR in a field value is refused, or handled as a space.",
            covers: "H11-22", ["X-Test: a\rb", length], request, allowing: [.openConnection, .success]),
        hiding(
            "nul-hides", "RFC 9110 5.5", "A NUL does not end a field value.", "Upload-Offset: 0\u{0}7"),
        hiding(
            "bare-cr-hides", "RFC 9112 2.2", "The text after a bare CR is not parsed as a field line.",
            "X-Test: a\rUpload-Offset: 0"),
        refusing(
            "no-host", .must, "RFC 9112 3.2", "A request without Host is refused.", covers: "H11-09", [length], request,
            hasHost: false, allowing: .openConnection),
        refusing(
            "two-hosts", .must, "RFC 9112 3.2", "A request with two Host fields is refused.", covers: "H11-09",
            ["Host: example.org", length], request, allowing: .openConnection),
        refusing(
            "bad-host", .must, "RFC 9112 3.2", "A request with an invalid Host is refused.", covers: "H11-09",
            ["Host: a b", length], request, hasHost: false, allowing: .openConnection),
        Case(
            "9112/folding", .must, "RFC 9112 5.2",
            "A folded field line is refused, or handled as one line with spaces.",
            covers: "H11-08", needs: ["4.2/complete"]
        ) { t in
            let answer = try t.answer(["X-Test: a", " b", "Content-Length: \(t.partSize)"], t.bytes(t.partSize))
            try t.expect(answer == nil || answer?.status != 500, "400, or success", answer?.summary ?? "")
            try t.expect(
                answer == nil || answer?.isSuccessful == true || answer?.isRefusal == true, "400, or success",
                answer?.summary ?? "")
        },
        Case(
            "9112/absolute-form", .must, "RFC 9112 3.2.2", "A target in absolute form is accepted.",
            covers: "H11-26", needs: ["4.2/complete"]
        ) { t in
            var request = t.creation(complete: true, .bytes(t.bytes(t.partSize)))
            request.target = "\(t.subject.endpoint.scheme)://\(t.subject.endpoint.authority)\(request.target)"
            try t.expectSuccess(t.exchange(request), "to a target in absolute form")
        },
        Case(
            "9112/long-target", .should, "RFC 9110 15.5.15", "A target that is too long gets 414.",
            covers: "H11-18", needs: ["4.2/create-empty"]
        ) { t in
            let target = "/" + String(repeating: "a", count: 1 << 20)
            try t.expectLimited(Array("GET \(target) HTTP/1.1\r\nHost: a\r\n\r\n".utf8), [414, 400, 431])
        },
        Case(
            "9112/long-head", .should, "RFC 6585 5", "A head that is too long gets 431.", covers: "H11-18",
            needs: ["4.2/create-empty"]
        ) { t in
            let head = "OPTIONS * HTTP/1.1\r\nHost: a\r\nX-Test: " + String(repeating: "a", count: 1 << 20) + "\r\n\r\n"
            try t.expectLimited(Array(head.utf8), [431, 400, 413])
        },
    ]

    static let chunks: [Case] = [
        refusing(
            "chunk-overflow", .must, "RFC 9112 7.1", "A chunk size beyond 64 bits does not wrap around.",
            covers: "H11-10", ["Transfer-Encoding: chunked"], "10000000000000005\r\nhello\r\n0\r\n\r\n",
            refusal: 400...599, allowing: [.waiting, .openConnection]),
        refusing(
            "chunk-negative", .must, "RFC 9112 7.1", "A chunk size with a sign is refused.", covers: "H11-10",
            ["Transfer-Encoding: chunked"], "-1\r\nhello\r\n0\r\n\r\n"),
        refusing(
            "chunk-empty-size", .must, "RFC 9112 7.1", "A chunk without a size is refused.", covers: "H11-10",
            ["Transfer-Encoding: chunked"], "\r\nhello\r\n0\r\n\r\n"),
        refusing(
            "chunk-no-number", .must, "RFC 9112 7.1", "A chunk size that is not hexadecimal is refused.",
            covers: "H11-10",
            ["Transfer-Encoding: chunked"], "xyz\r\nhello\r\n0\r\n\r\n"),
        refusing(
            "chunk-without-end", .must, "RFC 9112 7.1", "A chunk whose data is not followed by CRLF is refused.",
            covers: "H11-17",
            ["Transfer-Encoding: chunked"], "5\r\nhelloo\r\n0\r\n\r\n"),
        refusing(
            "chunk-bare-lf", .should, "RFC 9112 2.2",
            "A line of the chunked coding that ends with LF alone is refused.", covers: "H11-23",
            ["Transfer-Encoding: chunked"], "5\nhello\n0\n\n"),
        Case(
            "9112/chunk-extension", .must, "RFC 9112 7.1.1", "An unknown chunk extension is ignored.",
            covers: "H11-11", needs: ["4.2/chunked-complete"]
        ) { t in
            let content = t.bytes(t.partSize)
            let size = String(content.count, radix: 16)
            let body = Array("\(size);a=b;c=\"d\"\r\n".utf8) + content + Array("\r\n0;x\r\n\r\n".utf8)
            let answer = try t.answer(["Transfer-Encoding: chunked"], body)
            try t.expect(answer?.isSuccessful == true, "2xx", answer?.summary ?? "the end of the connection")
        },
        Case(
            "9112/endless-extension", .should, "RFC 9112 7.1.1", "A chunk extension that is too long is refused.",
            covers: "H11-11",
            needs: ["4.2/chunked-complete"]
        ) { t in
            let body = Array(("5;" + String(repeating: "a", count: 1 << 20) + "\r\nhello\r\n0\r\n\r\n").utf8)
            let answer = try t.answer(["Transfer-Encoding: chunked"], body)
            try t.expect(answer?.isSuccessful != true, "a refusal", answer?.summary ?? "")
        },
    ]

    /// Content that a server with wrong framing parses as a request.
    private static let request = "OPTIONS / HTTP/1.1\r\nHost: a\r\n\r\n"
    private static let length = "Content-Length: \(request.utf8.count)"

    /// A case in which a creation with these field lines and this content is refused: with a status in `refusal` (`nil`
    /// for any status), or by closing the connection without a response.
    ///
    /// Because the end of the content is unknown, the connection has to be closed, unless `leniency` contains
    /// ``Leniency/openConnection``.
    private static func refusing(
        _ name: String, _ level: Level, _ section: String, _ requirement: String, covers: String, _ lines: [String],
        _ content: String, version: String = "HTTP/1.1", hasHost: Bool = true,
        refusal: ClosedRange<Int>? = 400...499, allowing leniency: Leniency = []
    ) -> Case {
        Case("9112/\(name)", level, section, requirement, covers: covers, needs: ["4.2/complete"]) { t in
            let answers = try t.answers(
                to: lines, Array(content.utf8), version: version, hasHost: hasHost, allowing: leniency)
            guard let first = answers.first else { return }
            if let refusal, !(leniency.contains(.success) && first.isSuccessful) {
                try t.expect(
                    refusal.contains(first.status) || (level == .must && [501, 505].contains(first.status)),
                    refusal == 501...501 ? "501" : "400", first.summary)
            }
            guard leniency.contains(.openConnection) else {
                return try t.expect(
                    answers.isEnded, "the end of the connection after \(first.status)",
                    "an open connection, or another response")
            }
            // The server may answer the request after the content. If the content has no end, this request is part of
            // the content and gets no response.
            let maximum = leniency.contains(.waiting) ? 1 : 2
            try t.expect(answers.count <= maximum, "no response to bytes of the content", "\(answers.count) responses")
            if first.isSuccessful, let second = answers.second {
                try t.expect(
                    second.status != 400, "a response to the request after the content", second.summary)
            }
        }
    }

    /// A case in which an append is refused because its only Upload-Offset is in a line that is not a valid field line.
    private static func hiding(_ name: String, _ section: String, _ requirement: String, _ line: String) -> Case {
        Case("9112/\(name)", .must, section, requirement, covers: "H11-22", needs: ["4.4/append"]) { t in
            let upload = try t.newUpload()
            let bare = t.append(upload, at: 0, complete: false, .bytes(t.bytes(t.partSize))).without("Upload-Offset")
            if try t.exchange(bare, with: upload).isSuccessful { throw t.skip("appends need no Upload-Offset") }
            let parts = line.split(separator: ":", maxSplits: 1).map(String.init)
            let request = bare.with(parts[0], String(parts[1].dropFirst()))
            let connection = try t.connect(to: upload.endpoint)
            t.setLastRequest(request, upload.endpoint)
            try connection.send(request)
            guard let answer = try connection.readResponseUnlessEnded() else { return }
            try t.expect(!answer.isSuccessful, "a refusal, or the end of the connection", answer.summary)
        }
    }
}
