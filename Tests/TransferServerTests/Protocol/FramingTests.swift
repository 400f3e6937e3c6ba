import ConformanceKit
import Foundation
import HTTPTestSupport
import Testing

/// The beginning and the end of requests (RFC 9112). The harness verifies that malformed requests are refused, and
/// `RequestReaderTests` tests every kind of them. These tests verify what only our server promises: a problem document for
/// each refusal, its limits, its log, and the files in the data directory.
@Suite("Framing", .blocking)
struct FramingTests {
    /// A request that must not be served after a request with an ambiguous end.
    private static let smuggled = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"

    /// Sends raw bytes and then a request that must not be served, and returns the first response.
    private func refusal(
        _ raw: String, _ server: SocketService, inPieces: Bool = false,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> Response {
        let connection = try server.connect()
        // The server may have closed the connection before the second request is sent.
        if inPieces {
            _ = raw.utf8.allSatisfy { (try? connection.send([$0])) != nil }
        } else {
            try connection.send(raw)
        }
        try? connection.send(Self.smuggled)
        let response = try connection.readResponse()
        connection.endOutput()
        let (_, leftover) = try connection.awaitClosing()
        #expect(!leftover.contains("HTTP/1.1 200"), "the next request was served", sourceLocation: sourceLocation)
        #expect(
            !String(decoding: connection.received, as: UTF8.self).contains("\r\n\r\nok\n"),
            "the next request was served",
            sourceLocation: sourceLocation)
        return response
    }

    private func head(_ lines: String..., method: String = "PUT", version: String = "HTTP/1.1") -> String {
        "\(method) /files/f \(version)\r\nHost: localhost\r\n" + lines.map { $0 + "\r\n" }.joined() + "\r\n"
    }

    @Test(
        "H11-01 H11-02 H11-03 H11-04 H11-05 H11-06 H11-07 H11-08 H11-09 H11-10 H11-17 H11-21 H11-22 H11-23: ambiguous or malformed requests get a problem document, and the connection ends"
    )
    func refusedRequests() throws {
        let chunked = head("Transfer-Encoding: chunked")
        let cases: [(name: String, raw: String, status: Int)] = [
            ("H11-01 both lengths", head("Content-Length: 5", "Transfer-Encoding: chunked") + "0\r\n\r\n", 400),
            ("H11-02 two lengths", head("Content-Length: 5", "Content-Length: 6") + "hello", 400),
            ("H11-03 plus", head("Content-Length: +5") + "hello", 400),
            ("H11-03 too large", head("Content-Length: 1000000000000000000000000000000"), 413),
            ("H11-04 last not chunked", head("Transfer-Encoding: chunked, identity"), 400),
            ("H11-05 in two lines", head("Transfer-Encoding: gzip", "Transfer-Encoding: chunked"), 501),
            ("H11-06 HTTP/1.0", head("Transfer-Encoding: chunked", version: "HTTP/1.0") + "0\r\n\r\n", 400),
            ("H11-07 space before colon", head("Content-Length : 5") + "hello", 400),
            ("H11-08 folded", head("X-Folded: a\r\n b"), 400),
            ("H11-09 no host", "PUT /files/f HTTP/1.1\r\nContent-Length: 0\r\n\r\n", 400),
            ("H11-09 host with path", "PUT /files/f HTTP/1.1\r\nHost: localhost/x\r\nContent-Length: 0\r\n\r\n", 400),
            ("H11-10 chunk overflow", chunked + "FFFFFFFFFFFFFFFFF\r\nhello\r\n0\r\n\r\n", 400),
            ("H11-17 no end of the chunk", chunked + "5\r\nhello0\r\n\r\n", 400),
            ("H11-21 twice chunked", head("Transfer-Encoding: chunked, chunked") + "0\r\n\r\n", 400),
            ("H11-22 NUL", head("X-Nul: a\0b"), 400),
            ("H11-22 control in the method", "G\u{1b}T /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
            ("H11-23 bare LF in chunks", chunked + "5\nhello\n0\n\n", 400),
            ("no version", "GET /files/f\r\nHost: localhost\r\n\r\n", 400),
            ("HTTP/2 without upgrade", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
            ("TLS", "\u{16}\u{3}\u{1}\0\u{5}hello", 400),
            ("H11-18 many lines", head(String(repeating: "a:\r\n", count: 2000) + "X: y"), 431),
        ]
        try withSocket { server in
            for (name, raw, status) in cases + cases.map({ ("\($0), byte by byte", $1, $2) }) {
                do {
                    let response = try refusal(raw, server, inPieces: name.hasSuffix("byte"))
                    #expect(response.status == status, "\(name): \(response)")
                    #expect(response.problem?.status == status, "\(name): \(response)")
                    #expect(response.problem?.code?.isEmpty == false, "\(name): \(response)")
                    #expect(response.value("Connection") == "close", "\(name): \(response)")
                } catch {
                    Issue.record(error, "\(name)")
                }
            }
            #expect(server.data.publishedNames().isEmpty)
        }
    }

    /// Texts that some recipients accept as the end of a request, and others do not.
    private static let disputedEnds = [
        "5\r\nhello\r\n0\r\n\0\r\n", "5\r\nhello\r\n0\r\n\0X: y\r\n\r\n", "5\r\nhello\r\n0\r\nX: y\r\n\0\r\n",
        "5\r\nhello\r\n0\r\nX: a\rb\r\n\r\n", "5\r\nhello\r\n0\0\r\n\r\n", "5\r\nhello\r\n0;\0\r\n\r\n",
        "5\r\nhello\r\n0\r\n\r\0\n",
        "5\r\nhello\r\n0\r\n\r\n\0\r\n", "5\r\nhello\r\n0\r\n\r\n\r",
    ]

    @Test(
        "H11-22: NUL and bare CR in trailers, in chunk lines and between requests never shift the start of a request",
        arguments: disputedEnds, [true, false])
    func disputedEnd(content: String, inPieces: Bool) throws {
        try withSocket { server in
            let connection = try server.connect()
            let victim =
                "PUT /files/g HTTP/1.1\r\nHost: localhost\r\nContent-Length: +45\r\n\r\n"
                + "DELETE /files/f HTTP/1.1\r\nHost: localhost\r\n\r\n" + Self.smuggled
            let bytes = Array((head("Transfer-Encoding: chunked") + content + victim).utf8)
            for piece in inPieces ? bytes.map({ [$0] }) : [bytes] { try? connection.send(piece) }
            connection.endOutput()
            _ = try? connection.awaitClosing()
            let answers = String(decoding: connection.received, as: UTF8.self)
            #expect(!answers.contains("\r\n\r\nok\n"), "\(answers)")
            #expect(server.data.published("g") == nil)
            #expect(answers.components(separatedBy: "application/problem+json").count == 2, "\(answers)")
            #expect(!answers.contains("html"), "\(answers)")
            let isPublished = answers.contains("HTTP/1.1 201")
            #expect(server.data.published("f") == (isPublished ? Array("hello".utf8) : nil))
        }
    }

    @Test(
        "H11-10 H11-23: a resumable upload with malformed chunks keeps the bytes before them, and is not complete",
        arguments: ["zz\r\n", "5\nhello\r\n0\r\n\r\n"])
    func malformedChunksOfUpload(chunks: String) throws {
        try withSocket { server in
            let connection = try server.connect()
            try connection.send(Request.creation(.v8, complete: true, .openChunks))
            let location = try #require(try connection.requireInterim().location)
            try connection.sendChunk(Payload.bytes(1000))
            try connection.send(chunks)
            #expect(try connection.readResponse().status == 400)
            _ = try? connection.awaitClosing()
            let state = try server.retrieve(location)
            #expect(state.complete == false)
            #expect(try #require(state.offset) <= 1000)
            #expect(server.data.publishedNames().isEmpty)
        }
    }

    @Test("H11-11: chunk extensions and trailers are ignored")
    func extensions() throws {
        try withSocket { server in
            let connection = try server.connect()
            try connection.send(head("Transfer-Encoding: chunked", "Upload-Complete: ?1"))
            try connection.send(
                "5;name=value;other=\"x\"\r\nhello\r\n0;last\r\nX-Trailer: 1\r\nContent-Length: 7\r\n\r\n")
            #expect(try connection.readResponse().status == 201)
            #expect(server.data.published("f") == Array("hello".utf8))
            #expect(try connection.exchange(.get("/healthz")).status == 200)
        }
    }

    @Test("H11-11: the size of chunk extensions and trailers is limited", arguments: [true, false])
    func endlessExtension(inTrailer: Bool) throws {
        try withSocket { server in
            let connection = try server.connect()
            try connection.send(head("Transfer-Encoding: chunked"))
            try connection.send(inTrailer ? "5\r\nhello\r\n0\r\nX-Trailer: " : "5;x=")
            _ = connection.sendUntilRefused(Array(repeating: UInt8(ascii: "a"), count: 1 << 20))
            let response = try connection.readResponse()
            #expect(response.problem?.code == (inTrailer ? "trailer-too-large" : "malformed-chunk"))
            #expect(response.status == (inTrailer ? 431 : 400))
            #expect((try? connection.awaitClosing()) != nil)
            #expect(server.data.published("f") == nil)
        }
    }

    @Test("H11-12: a connection that ends before the last chunk interrupts the upload", arguments: [true, false])
    func endBeforeLastChunk(isUpload: Bool) throws {
        try withSocket { server in
            let connection = try server.connect()
            var location: String?
            if isUpload {
                try connection.send(Request.creation(.v8, complete: true, .openChunks))
                location = try connection.requireInterim().location
            } else {
                try connection.send(Request("PUT", "/files/file.bin", [], .openChunks))
            }
            try connection.sendChunk(Payload.bytes(100))
            connection.endOutput()
            try server.awaitInterruption("PUT")
            #expect(server.data.publishedNames().isEmpty)
            if let location {
                let state = try server.retrieve(location)
                #expect(state.offset == 100)
                #expect(state.complete == false)
            }
        }
    }

    @Test("H11-13: a connection that ends before Content-Length interrupts the upload")
    func endBeforeContentLength() throws {
        try withSocket { server in
            let connection = try server.connect()
            try connection.send(Request("PUT", "/files/f", [], .declared(10)))
            try connection.send(Payload.bytes(5))
            connection.endOutput()
            try server.awaitInterruption("PUT")
            #expect(server.data.published("f") == nil)
        }
    }

    @Test("H11-18: an oversized head gets 414 or 431", arguments: [true, false])
    func oversized(inTarget: Bool) throws {
        try withSocket { server in
            let connection = try server.connect()
            let filler = String(repeating: "a", count: 200_000)
            let raw =
                inTarget
                ? "GET /files/\(filler) HTTP/1.1\r\nHost: localhost\r\n\r\n"
                : "GET /files/f HTTP/1.1\r\nHost: localhost\r\nX-Filler: \(filler)\r\n\r\n"
            _ = connection.sendUntilRefused(Array(raw.utf8))
            let response = try connection.readResponse()
            #expect(response.status == (inTarget ? 414 : 431))
            #expect(response.problem?.code == (inTarget ? "target-too-long" : "head-too-large"))
            #expect((try? connection.awaitClosing()) != nil)
            #expect(try server.exchange(.get("/healthz")).status == 200)
        }
    }

    /// Requests that are refused before their content is read.
    private static let refusedBeforeContent = [
        "PUT /files/f HTTP/1.1\r\nHost: localhost\r\nContent-Length: +45\r\n\r\n",
        "PATCH /files/f HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4000000000\r\n\r\n",
        "PATCH /files/f HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nF0000000\r\n",
        "PATCH /files/f HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4000000000\r\nExpect: 100-continue\r\n\r\n",
    ]

    @Test(
        "after a refusal the server reads content up to a limit, so that the refusal reaches the client",
        arguments: refusedBeforeContent)
    func discardedContent(head: String) throws {
        try withSocket { server in
            let connection = try server.connect()
            try connection.send(head)
            let response = try connection.readResponse()
            #expect((400...499).contains(response.status))
            let piece = [UInt8](repeating: 0x61, count: 1 << 20)
            var sent = 0
            while sent < 400, (try? connection.send(piece, within: .seconds(5))) != nil { sent += 1 }
            // A part of the content may be in the buffers of the kernel.
            #expect(sent >= 256 && sent < 300, "\(sent) MiB")
        }
    }

    private func oldRequest(_ method: String, _ target: String, _ fields: [(String, String)] = []) -> Request {
        var request = Request(method, target, fields)
        request.version = "HTTP/1.0"
        return request
    }

    @Test(
        "a plain PUT of HTTP/1.0 without Content-Length gets 411 and replaces nothing; the next request is not served")
    func lengthlessPut() throws {
        try withSocket { server in
            #expect(try server.exchange(Request("PUT", "/files/f", [], .bytes([1, 2, 3]))).status == 201)
            for content in ["", "content until the end\r\n", Self.smuggled, String(repeating: "x", count: 3_000_000)] {
                let connection = try server.connect()
                try connection.send(
                    "PUT /files/f HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n" + content)
                connection.endOutput()
                let response = try connection.readResponse()
                #expect(response.status == 411 && response.problem?.code == "length-required", "\(response)")
                #expect(response.value("Connection") == "close")
                #expect(try connection.awaitClosing() == (.closed, ""))
            }
            #expect(server.data.published("f") == [1, 2, 3])
            let missing = try server.exchange(oldRequest("PUT", "/files/g"))
            #expect(missing.status == 411 && server.data.published("g") == nil)
        }
    }

    @Test("requests of HTTP/1.0 without Content-Length are served unless they would publish a file")
    func lengthlessOthers() throws {
        try withSocket { (server) throws in
            for version in Interop.allCases {
                // HTTP/1.0 proxies omit the length of empty content.
                let fields = Request.versionField(version) + [Request.completeness(version, false)]
                #expect(try server.exchange(oldRequest("PUT", "/files/\(version)", fields)).status == 201)
                #expect(try server.exchange(oldRequest("POST", "/files/", fields)).status == 201)
            }
            #expect(server.data.unfinished.count == 2 * Interop.allCases.count)
            // These requests would publish files, and without a length their content could be cut.
            for (method, target) in [("PUT", "/files/complete"), ("POST", "/files/")] {
                let complete = oldRequest(method, target, [Request.completeness(.v8, true)])
                #expect(try server.exchange(complete).status == 411)
            }
            #expect(try server.exchange(oldRequest("POST", "/files/")).status == 411)
            let upload = try server.begin(.v8)
            let append = [
                Request.completeness(.v8, true), ("Upload-Offset", "0"), ("Content-Type", "application/partial-upload"),
            ]
            #expect(try server.exchange(oldRequest("PATCH", upload, append)).status == 411)
            #expect(server.data.publishedNames() == [])
            #expect(try server.exchange(Request("PUT", "/files/new")).status == 201)
            #expect(server.data.published("new") == [])
            var declared = oldRequest("PUT", "/files/old")
            declared.content = .bytes([1])
            #expect(try server.exchange(declared).status == 201)
            #expect(server.data.published("old") == [1])
            #expect(try server.exchange(oldRequest("DELETE", "/files/old")).status == 204)
        }
    }

    @Test("H11-18: heads of a usual size are served")
    func largeHead() throws {
        try withSocket { server in
            var request = Request.creation(.v8, complete: true, .bytes([1]))
            for number in 0..<100 { request.fields.append(("X-Filler-\(number)", String(repeating: "b", count: 100))) }
            let response = try server.exchange(request)
            #expect(response.status == 201)
        }
    }

    @Test("H11-26: an absolute-form target identifies the same resource; other forms are refused")
    func targetForms() throws {
        try withSocket { server in
            let absolute = Request.creation(
                .v8, "PUT", "http://\(server.authority)/files/f", complete: true, .bytes([1]))
            #expect(try server.exchange(absolute).status == 201)
            #expect(server.data.published("f") == [1])
            #expect(try server.exchange(.get("http://\(server.authority)/files/f?x=y")).content == [1])
            for target in ["files/f", "ftp://localhost/files/f", "http:///files/f", "*", "/files/\u{e4}", "/files/f#x"]
            {
                let response = try server.exchange(.get(target))
                #expect(response.status == 400, "\(target)")
            }
        }
    }
}
