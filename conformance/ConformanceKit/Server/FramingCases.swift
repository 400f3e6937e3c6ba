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
            ["Content-Length: 18446744073709551621"], "hello"),
        refusing(
            "coding-not-last", .must, "RFC 9112 6.3", "The last transfer coding of a request is chunked.",
            covers: "H11-04", ["Transfer-Encoding: chunked, identity"], "5\r\nhello\r\n0\r\n\r\n"),
        refusing(
            "coding-unknown", .should, "RFC 9112 6.1", "A transfer coding that nobody knows is not implemented.",
            covers: "H11-05", ["Transfer-Encoding: foo, chunked"], "5\r\nhello\r\n0\r\n\r\n", refusal: 501...501),
        refusing(
            "coding-twice", .must, "RFC 9112 6.1", "Chunked is applied once.", covers: "H11-21",
            ["Transfer-Encoding: chunked, chunked"], "5\r\nhello\r\n0\r\n\r\n"),
        refusing(
            "coding-in-1.0", .must, "RFC 9112 6.1", "HTTP/1.0 has no transfer codings.", covers: "H11-06",
            ["Transfer-Encoding: chunked"], "5\r\nhello\r\n0\r\n\r\n", version: "HTTP/1.0", refusal: nil),
        refusing(
            "space-before-colon", .must, "RFC 9112 5.1", "No white space stands before a colon.", covers: "H11-07",
            ["Content-Length : 5"], "hello"),
        refusing(
            "nul", .must, "RFC 9110 5.5", "A NUL in a field value is refused.", covers: "H11-22",
            ["X-Test: a\u{0}b", "Content-Length: 5"], "hello"),
        refusing(
            "bare-cr", .must, "RFC 9112 2.2", "A CR alone in a field value is refused.", covers: "H11-22",
            ["X-Test: a\rb", "Content-Length: 5"], "hello"),
        refusing(
            "no-host", .must, "RFC 9112 3.2", "A request without Host is bad.", covers: "H11-09",
            ["Content-Length: 5"], "hello", hasHost: false),
        refusing(
            "two-hosts", .must, "RFC 9112 3.2", "A request with two Hosts is bad.", covers: "H11-09",
            ["Host: example.org", "Content-Length: 5"], "hello"),
        refusing(
            "bad-host", .must, "RFC 9112 3.2", "A Host that is none is bad.", covers: "H11-09",
            ["Host: a b", "Content-Length: 5"], "hello", hasHost: false),
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
            request.target = "http://\(t.subject.endpoint.authority)\(request.target)"
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
            covers: "H11-10", ["Transfer-Encoding: chunked"], "10000000000000005\r\nhello\r\n0\r\n\r\n"),
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
            "9112/chunk-extension", .must, "RFC 9112 7.1.1", "A chunk extension that nobody knows says nothing.",
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

    static let connections: [Case] = [
        Case(
            "9112/pipelining", .must, "RFC 9112 9.3.2", "Pipelined requests are answered in their order.",
            covers: "H11-16", needs: ["4.4/append"]
        ) { t in
            let upload = try t.newUpload()
            let connection = try t.connect(to: upload.endpoint)
            let append = t.append(upload, at: 0, complete: false, .bytes(t.bytes(t.part)))
            let retrieval = t.retrieval(upload)
            connection.expectResponses(to: append, retrieval)
            let authority = upload.endpoint.authority
            try connection.send(
                append.head(authority: authority) + append.encodedContent + retrieval.head(authority: authority))
            try t.expectSuccess(connection.readResponse(), "to the append")
            let second = try connection.readResponse()
            try t.expectSuccess(second, "to the HEAD behind it")
            try t.expect(
                second.integer("Upload-Offset") == Int64(t.part), "Upload-Offset: \(t.part)", second.summary)
        },
        Case(
            "9112/unread-content", .must, "RFC 9112 9.3", "What is left of a refused content is no request.",
            covers: "H11-14", needs: ["4.4/offset-mismatch"]
        ) { t in
            let upload = try t.newUpload()
            let victim = try t.newUpload()
            let connection = try t.connect(to: upload.endpoint)
            let smuggled = t.cancellation(victim).head(authority: upload.endpoint.authority)
            let content = smuggled + [UInt8](repeating: 0x0A, count: 200_000) + smuggled
            let request = t.append(upload, at: 7, complete: false, .bytes(content))
            t.remember(request, upload.endpoint)
            try connection.send(request)
            try t.expect(connection.readResponse(), isOneOf: [409, 413], "to an append at another offset")
            _ = connection.hasInput(within: .milliseconds(200))
            try t.expectStanding(of: victim, offset: 0)
        },
        Case(
            "9112/early-refusal", .should, "RFC 9112 9.6", "A refusal can be read by a client that is still sending.",
            covers: "H11-15", needs: ["4.4/offset-mismatch"]
        ) { t in
            let size = 8 << 20
            guard t.subject.allows(size) else { throw t.skip("the limits are too low for it") }
            let upload = try t.newUpload()
            let connection = try t.connect(to: upload.endpoint)
            let request = t.append(upload, at: 7, complete: false, .declared(Int64(size)))
            t.remember(request, upload.endpoint)
            try connection.send(request)
            // A client that does not look for responses while it sends.
            try connection.send(t.bytes(size))
            try t.expect(connection.readResponse(), isOneOf: [409], "to an append at another offset")
        },
        Case(
            "9112/single-bytes", .must, "RFC 9112 2.2", "How a request is cut into segments does not matter.",
            covers: "APP-01", needs: ["4.4/append"]
        ) { t in
            let upload = try t.newUpload()
            let connection = try t.connect(to: upload.endpoint)
            let request = t.append(upload, at: 0, complete: false, .bytes(t.bytes(10)))
            if t.part > 10 { throw t.skip("the limits are too high for it") }
            t.remember(request, upload.endpoint)
            connection.expectResponses(to: request)
            try connection.sendByBytes(
                request.head(authority: upload.endpoint.authority) + request.encodedContent)
            try t.expectSuccess(connection.readResponse(), "to an append byte by byte")
            try t.expectStanding(of: upload, offset: 10)
        },
    ]

    /// A creation with these field lines and this content is refused: by a status of `refusal`, or by the end of the
    /// connection without a response. With nil any status is right if the connection ends after it.
    private static func refusing(
        _ name: String, _ level: Level, _ section: String, _ requirement: String, covers: String, _ lines: [String],
        _ content: String, version: String = "HTTP/1.1", hasHost: Bool = true, refusal: ClosedRange<Int>? = 400...499
    ) -> Case {
        Case("9112/\(name)", level, section, requirement, covers: covers, needs: ["4.2/whole"]) { t in
            // Something behind it that must not be taken for a request.
            let behind = "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"
            let (answer, isEnded) = try t.answerAndEnd(
                lines, Array((content + behind).utf8), version: version, hasHost: hasHost)
            guard let answer else { return }
            if let refusal {
                try t.expect(
                    refusal.contains(answer.status) || (level == .must && [501, 505].contains(answer.status)),
                    refusal == 501...501 ? "501" : "400", answer.summary)
            }
            try t.expect(
                isEnded || (refusal != nil && lines.allSatisfy { !$0.contains("ength") && !$0.contains("oding") }),
                "the end of the connection behind \(answer.status)", "it stays open, or more is answered")
        }
    }
}

extension CaseContext {
    /// Sends a creation with these lines and content as they are; nil where the connection ends without a response.
    func answer(_ lines: [String], _ content: [UInt8]) throws -> Response? {
        try answerAndEnd(lines, content, version: "HTTP/1.1", hasHost: true).response
    }

    func answerAndEnd(
        _ lines: [String], _ content: [UInt8], version: String, hasHost: Bool
    ) throws -> (response: Response?, isEnded: Bool) {
        var request = creation(complete: true)
        request.version = version
        request.hasHost = hasHost
        let connection = try connect()
        var bytes = Array(request.head(authority: connection.endpoint.authority).dropLast(2))
        bytes += Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8)
        bytes += content
        connection.expectResponses(to: request)
        try connection.send(bytes)
        let response: Response
        do throws(WireFailure) {
            response = try connection.readResponse()
        } catch {
            switch error {
            case .closed, .reset: return (nil, true)
            default: throw error
            }
        }
        if let location = response.announcements.first?.location {
            _ = try? upload(at: location, of: request, location)
        }
        // More than one response would answer what stands behind the request.
        let isAnswered = (try? connection.awaitHead(within: .milliseconds(300))) == true
        return (
            response,
            !isAnswered && (try? connection.awaitEnding(within: min(.seconds(5), subject.timeout))) ?? nil != nil
        )
    }

    /// A head that is far too long is answered by one of these, or by the end of the connection.
    func expectLimited(_ bytes: [UInt8], _ statuses: [Int]) throws {
        let connection = try connect()
        connection.expectResponses(to: Request("OPTIONS", "*"))
        try connection.send(bytes, stoppingAtResponse: true)
        let response: Response
        do throws(WireFailure) {
            response = try connection.readResponse()
        } catch {
            switch error {
            case .closed, .reset: return
            default: throw error
            }
        }
        try expect(response, isOneOf: statuses, "to a megabyte")
    }
}
