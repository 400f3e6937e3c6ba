import ConformanceKit
import FoundationEssentials
import Glibc
import TestSupport
import Testing

/// The access log on standard error.
@Suite("Access log", .blocking)
struct AccessLogTests {
    private struct Line: Decodable {
        let time: String
        let level: String
        let request: String?
        let method: String?
        let target: String?
        let status: Int?
        let code: String?
        let received: Int?
        let sent: Int?
        let milliseconds: Double?
        let peer: String?
        let principal: String?
        let upload: String?
        let offset: Int?
        let interim: Int?
        let interimOmitted: String?
        let message: String?

        enum CodingKeys: String, CodingKey {
            case time, level, request, method, target, status, code, received, sent, milliseconds, peer, principal
            case upload, offset, interim, message
            case interimOmitted = "interim_omitted"
        }
    }

    /// The complete lines of the log that contain `text`, once there are `count` of them.
    private func lines(_ server: ServerProcess, _ count: Int, containing text: String) throws -> [String] {
        try server.process.awaitErrorOutput { log in
            let found = log.split(separator: "\n", omittingEmptySubsequences: false).dropLast().map(String.init)
                .filter { $0.contains(text) }
            return found.count >= count ? found : nil
        }
    }

    @Test("SEC-15: each JSON line is a valid object, each request has its own id, and no line has an upload's secret")
    func json() throws {
        // The port can be read from the log in the text form only.
        let socket = try TemporaryDirectory()
        let options = ["--log-format", "json", "--log-level", "debug", "--listen", "unix:\(socket.path)/s"]
        let server = try ServerProcess(options)
        func exchange(_ request: Request) throws -> Response {
            try RawConnection(unixPath: socket.path + "/s").exchange(request)
        }
        _ = try exchange(Request("PUT", "/files/a%22b.bin", [], .bytes([1, 2, 3])))
        _ = try exchange(Request("GET", "/files/none.bin", [("Range", "bytes=0-")]))
        let location = try #require(try exchange(.creation(complete: false, .bytes([1, 2]))).location)
        _ = try exchange(.append(.v8, location, at: 7, complete: false, .bytes([1])))
        _ = try exchange(.retrieval(.v8, location))
        _ = try exchange(.get(location + "?x=" + location))
        _ = try exchange(.get("/x\"y?secret=1"))
        _ = try exchange(.append(.v8, location, at: 2, complete: true, .bytes([3])))
        _ = try exchange(.cancellation(.v8, location))
        _ = try lines(server, 5, containing: "/uploads/")
        #expect(try server.stop() == .exited(0))
        let decoder = JSONDecoder()
        var requests: Set<String> = []
        for text in server.log.split(separator: "\n") {
            let line = try decoder.decode(Line.self, from: Data(text.utf8))
            #expect(line.time.hasPrefix("20") && line.time.hasSuffix("Z"))
            guard line.method != nil else { continue }
            let identifier = try #require(line.request)
            #expect(requests.insert(identifier).inserted)
            #expect(line.target?.hasPrefix("/") == true)
            #expect(line.received != nil && line.sent != nil && (line.milliseconds ?? -1) >= 0)
        }
        #expect(requests.count == 9)
        try checkUploadLines(server, decoder)
        let mismatch = try lines(server, 1, containing: "\"status\":409")
        #expect(mismatch[0].contains("\"code\":\"mismatching-upload-offset\""))
        let secret = try #require(location.split(separator: "/").last)
        #expect(!server.log.contains(secret))
        #expect(!server.log.contains(secret.prefix(12)))
        #expect(!server.log.contains("secret=1"), "queries are not logged")
    }

    /// Every line of an upload has the same hash, the durable offset, and whether 104 was sent.
    private func checkUploadLines(_ server: ServerProcess, _ decoder: JSONDecoder) throws {
        let all = try server.log.split(separator: "\n").map { try decoder.decode(Line.self, from: Data($0.utf8)) }
        let lines = all.filter { $0.upload != nil }
        #expect(Set(lines.compactMap(\.upload)).count == 1)
        #expect(lines.allSatisfy { $0.upload?.hasPrefix("upload:") == true && $0.principal == "anonymous" })
        // The lines of different connections may be in another order than the requests.
        let summaries = lines.map { line in
            [
                line.method, line.status.map { "\($0)" }, line.offset.map { "\($0)" }, line.interim.map { "\($0)" },
                line.interimOmitted,
            ]
            .map { $0 ?? "-" }.joined(separator: " ")
        }
        #expect(
            Set(summaries) == [
                "PUT 201 2 1 -", "PATCH 409 2 0 refused", "HEAD 204 2 - -", "GET 204 2 - -", "PATCH 201 3 0 not-due",
                "DELETE 204 - - -",
            ])
        #expect(all.first { $0.method == "PUT" }?.interimOmitted == "no-completeness")
    }

    @Test("SEC-15: the text log has time, id, method, target, status and bytes of any request on one line")
    func text() throws {
        try withServer { server in
            let body = Payload.bytes(1000)
            let connection = try server.connect()
            _ = try connection.exchange(Request("PUT", "/files/f.bin", [], .bytes(body)))
            _ = try connection.exchange(Request("GET", "/files/f.bin", [("Range", "bytes=0-99")]))
            _ = try connection.exchange(.get("/files/none"))
            let put = try lines(server, 1, containing: " PUT /files/f.bin 201 in=1000 ")[0]
            #expect(put.hasPrefix("20"))
            for text in [" GET /files/f.bin 206 in=0 out=100 ", " GET /files/none 404 "] {
                let found = try lines(server, 1, containing: text)
                #expect(found.count == 1)
            }
            // Nothing that a client sends starts a line, or changes the color of a terminal.
            let forged = try server.connect()
            try forged.send("GET /files/a\u{1B}[31mb HTTP/1.1\r\nHost: localhost\r\n\r\n")
            _ = try? forged.readResponse()
            _ = try server.exchange(.get("/files/x%0a2026-01-01T00:00:00Z%20forged"))
            _ = try lines(server, 1, containing: " GET /files/x")
            #expect(!server.log.contains("\u{1B}"))
            #expect(!server.log.split(separator: "\n").contains { $0.hasPrefix("2026-01-01") })
            let location = try #require(try server.exchange(.creation(complete: false, .bytes([1, 2]))).location)
            let creation = try lines(server, 1, containing: " PUT /files/file.bin 201 in=2 ")[0]
            #expect(creation.contains(" upload:") && creation.contains(" offset=2 104=1 peer="))
            _ = try server.exchange(.retrieval(.v8, location))
            _ = try server.exchange(.get("http://\(server.authority)\(location)"))
            for spelling in ["%75ploads", "uploads/", "uploads"] {
                let secret = try #require(location.split(separator: "/").last)
                _ = try server.exchange(.get("/\(spelling)/\(secret)"))
            }
            let secret = try #require(location.split(separator: "/").last)
            _ = try server.exchange(.get("/healthz"))
            _ = try lines(server, 1, containing: "/healthz")
            #expect(!server.log.contains(secret))
        }
    }

    @Test(
        "The log line of a refusal has the code of its problem document")
    func codes() throws {
        try withServer { server in
            _ = try server.download("none")
            _ = try lines(server, 1, containing: " GET /files/none 404 no-such-file ")
            _ = try server.exchange(Request("PUT", "/files/none", [("If-Match", "*")], .bytes([1])))
            _ = try lines(server, 1, containing: " PUT /files/none 412 precondition-failed ")
        }
    }

    @Test("The log names the reason that ended a request: a take-over, a timeout")
    func reasons() throws {
        try withServer { server in
            let location = try server.begin(.v8, "/files/f", [1])
            let stuck = try server.connect()
            try stuck.send(Request.append(.v8, location, at: 1, complete: true, .declared(10)))
            try stuck.send([1, 2])
            // Depending on which arrives first, one retrieval may not be enough: it must come after the append.
            _ = try server.process.awaitErrorOutput { text in
                _ = try? server.exchange(.retrieval(.v8, location))
                return text.contains(" PATCH ") ? true : nil
            }
            #expect(try lines(server, 1, containing: "PATCH ")[0].hasSuffix("reason=taken-over interrupted"))
        }
        try withServer("--idle-timeout", "1") { server in
            let silent = try server.connect()
            try silent.send(Request("PUT", "/files/silent", [], .declared(10)))
            #expect(try lines(server, 1, containing: "/silent")[0].hasSuffix("reason=timeout interrupted"))
        }
    }

    @Test("Connections beyond the limit are logged once a minute, as docs/operating.md shows")
    func tooMany() throws {
        try withServer("--max-connections", "1") { server in
            let kept = try server.connectFast()
            for _ in 0..<3 { try server.connect().expectClosed() }
            let found = try lines(
                server, 1, containing: "warning: the maximum of 1 connections (--max-connections) is reached")
            #expect(found.count == 1)
            let end = "closed 0 connections to make room and rejected 1; 127.0.0.1 has the most connections, 1"
            #expect(found[0].hasSuffix(end))
            // The numbers and the address differ.
            func words(_ text: String) -> [String] {
                text.split { $0.isNumber || $0 == "." || $0 == "\n" }.map(String.init)
            }
            let documented = try DocumentBlock.content(in: "docs/operating.md", containing: "has the most connections")
            let start = try #require(found[0].firstRange(of: "warning: "))
            #expect(words(String(found[0][start.lowerBound...])) == words(documented))
            #expect(try kept.exchange(.get("/healthz")).status == 200)
        }
    }

    @Test("A failure of the store is logged with its cause")
    func causes() throws {
        try withServer { server in
            try FileManager.default.removeItem(atPath: server.root + "/uploads")
            #expect(try server.exchange(Request("PUT", "/files/f", [], .bytes([1]))).status == 500)
            _ = try lines(
                server, 1, containing: "cannot create the content file of an upload: No such file or directory (ENOENT)"
            )
        }
    }

    @Test("A request whose client disconnected is logged as interrupted")
    func interrupted() throws {
        try withServer { server in
            let connection = try server.connect()
            try connection.send(Request("PUT", "/files/f.bin", [], .declared(1000)))
            try connection.send(Payload.bytes(400))
            connection.close()
            let line = try lines(server, 1, containing: "PUT /files/f.bin - ")[0]
            #expect(line.contains("in=400"))
            #expect(line.hasSuffix("peer=127.0.0.1 reason=client interrupted"))
            #expect(server.published("f.bin") == nil)
        }
    }

    @Test("With --log-level error the log is empty as long as there is no error")
    func level() throws {
        let directory = try TemporaryDirectory()
        let socket = directory.path + "/s"
        let process = try ServerProcess.run(
            [
                "--root", directory.path + "/data", "--listen", "unix:" + socket, "--log-level", "error", "--min-free",
                "0",
            ])
        let connection: RawConnection? = pollUntil(within: .seconds(60)) { try? RawConnection(unixPath: socket) }
        let response = try #require(connection).exchange(.get("/files/none"))
        #expect(response.status == 404)
        process.kill(SIGTERM)
        #expect(try process.awaitEnding() == .exited(0))
        #expect(process.errorOutput.isEmpty)
    }
}
