import ConformanceKit
import FoundationEssentials
import Glibc
import Testing

/// `/metrics`.
@Suite("Metrics", .blocking)
struct MetricsTests {
    /// Sends twelve requests, seven of them for one upload: it is created, cut, taken over while stuck, refused at a wrong
    /// offset, and completed.
    private func sendRequests(to server: ServerProcess) throws {
        let location = try server.begin(.v8, "/files/f", Payload.bytes(1000))
        let cut = try server.connect()
        try cut.open(.append(.v8, location, at: 1000, complete: true, length: 6000, .declared(5000)))
        try cut.send(Payload.bytes(2000))
        cut.endOutput()
        try server.awaitInterruption("PATCH")
        #expect(try server.retrieve(location).offset == 3000)
        let stuck = try server.connect()
        try stuck.open(.append(.v8, location, at: 3000, complete: true, .declared(3000)))
        #expect(try server.retrieve(location).offset == 3000)
        stuck.expectClosed()
        #expect(
            try server.exchange(.append(.v8, location, at: 1, complete: true, .bytes([]))).status == 409)
        #expect(
            try server.exchange(
                .append(.v8, location, at: 3000, complete: true, .bytes(Payload.bytes(3000)))
            ).status == 201)
        // Requests that do not belong to the upload.
        let declined = Request.creation(.v8, "PUT", "/files/g", complete: true, .bytes([1, 2, 3]))
        #expect(try server.exchange(declined.with("Onward-Interim", "off")).interim.isEmpty)
        #expect(try server.exchange(Request("PUT", "/files/h", [], .bytes([1]))).status == 201)
        #expect(try server.exchange(Request("GET", "/files/f", [("Range", "bytes=0-99")])).content.count == 100)
        let missing = try server.exchange(.get("/files/none"))
        #expect(missing.status == 404)
        #expect(try server.exchange(Request("BREW", "/nowhere")).status == 404)
    }

    @Test("The requests of one upload change exactly the counters of their events")
    func oneUpload() throws {
        try withServer { server in
            try sendRequests(to: server)
            let metrics = try server.metrics { $0.requests == 12 }
            #expect(
                metrics.nonzero("onward_http_requests_total").filter { !$0.key.contains("/metrics") } == [
                    #"route="/files",method="PUT",status="201""#: 3,
                    #"route="/files",method="GET",status="206""#: 1,
                    #"route="/files",method="GET",status="404""#: 1,
                    #"route="/uploads",method="PATCH",status="none""#: 2,
                    #"route="/uploads",method="PATCH",status="409""#: 1,
                    #"route="/uploads",method="PATCH",status="201""#: 1,
                    #"route="/uploads",method="HEAD",status="204""#: 2,
                    #"route="other",method="other",status="404""#: 1,
                ])
            #expect(
                metrics.nonzero("onward_http_requests_interrupted_total") == [
                    #"reason="client""#: 1, #"reason="taken-over""#: 1,
                ])
            #expect(
                metrics.nonzero("onward_errors_total") == [
                    #"code="mismatching-upload-offset""#: 1, #"code="no-such-file""#: 1, #"code="not-found""#: 1,
                ])
            #expect(metrics["onward_http_received_bytes_total"] == 1000 + 2000 + 3000 + 3 + 1)
            #expect(metrics["onward_uploads_created_total"] == 1)
            #expect(metrics["onward_uploads_resumed_total"] == 3)
            #expect(metrics["onward_uploads_taken_over_total"] == 1)
            #expect(metrics["onward_uploads_completed_total"] == 1)
            #expect(metrics["onward_uploads_expired_total"] == 0)
            // Several servers do not count complete uploads, and publish a file with a change of the database.
            let isShared = server.shared != nil
            #expect(metrics.nonzero("onward_uploads") == (isShared ? [:] : [#"state="complete""#: 1]))
            #expect(metrics[#"onward_interim_responses_sent_total{kind="location"}"#] == 1)
            let skipped = metrics.nonzero("onward_interim_responses_omitted_total")
            #expect(skipped[#"reason="declined""#] == 1)
            #expect(skipped[#"reason="no-completeness""#] == 1)
            #expect(skipped[#"reason="refused""#] == 1)
            #expect(metrics[#"onward_store_size_bytes{kind="files"}"#] == 6000 + 3 + 1)
            #expect(metrics[#"onward_store_size_bytes{kind="uploads"}"#] == 0)
            #expect(metrics[#"onward_store_size_bytes{kind="catalog"}"#] > 0)
            // An object storage does not report its space.
            if !isShared {
                #expect(metrics["onward_store_free_bytes"] > 0)
                #expect(metrics["onward_store_capacity_bytes"] > metrics["onward_store_free_bytes"])
            }
            #expect(metrics["onward_offset_commit_duration_seconds_count"] >= 3)
            #expect(metrics[#"onward_fsync_duration_seconds_count{kind="content"}"#] >= 5)
            #expect(metrics[#"onward_fsync_duration_seconds_count{kind="publication"}"#] == (isShared ? 0 : 3))
            #expect(metrics["onward_offset_commit_failures_total"] == 0)
            #expect(metrics.nonzero("onward_fsync_failures_total").isEmpty)
            #expect(metrics["onward_connections_limit"] == 1000)
            #expect(metrics["onward_ready"] == 1)
            #expect(metrics.nonzero("onward_build_info").count == 1)
            let age = Double(time(nil)) - metrics["process_start_time_seconds"]
            #expect(age > -5 && age < 3600)
        }
    }

    @Test("If a download was cut, the metric counts the bytes that the kernel accepted")
    func cutDownload() throws {
        try withServer { server in
            let size = 32 << 20
            try server.place(Payload.bytes(size), as: "big")
            let reader = try server.connect(receiveBuffer: 16 << 10)
            try reader.send(.get("/files/big"))
            while reader.received.count < 1_000_000 { _ = try reader.receiveMore(until: Deadline(in: .seconds(10))) }
            reader.reset()
            let metrics = try server.metrics { $0["onward_http_requests_interrupted_total{reason=\"client\"}"] == 1 }
            // The responses of /metrics count, too.
            #expect(metrics["onward_http_sent_bytes_total"] >= 500_000)
            #expect(metrics["onward_http_sent_bytes_total"] < Double(size))
        }
    }

    @Test("LIM-19: an expired upload is counted once, and is removed from onward_uploads")
    func expired() throws {
        try withServer("--max-age", "3s") { server in
            _ = try server.begin(.v8, "/files/f", [1, 2, 3], length: 10)
            // The metrics of several servers are not read at the same time.
            let metrics = try server.metrics {
                $0["onward_uploads_expired_total"] > 0 && $0.nonzero("onward_uploads").isEmpty
            }
            #expect(metrics["onward_uploads_expired_total"] == 1)
            #expect(metrics[#"onward_store_size_bytes{kind="uploads"}"#] == 0)
        }
    }

    @Test("Content is counted while its upload is running, and open connections are reported")
    func running() throws {
        try withServer { server in
            let connection = try server.connect()
            try connection.open(.creation(.v8, complete: true, .declared(40 << 20)))
            try connection.send(Payload.bytes(20 << 20))
            let metrics = try server.metrics { $0["onward_http_received_bytes_total"] >= Double(8 << 20) }
            #expect(metrics["onward_http_received_bytes_total"] <= Double(20 << 20))
            #expect(metrics.nonzero("onward_uploads") == [#"state="receiving""#: 1])
            #expect(metrics["onward_store_size_bytes{kind=\"uploads\"}"] == Double(40 << 20))
            // Each server also counts the connection of the request for its metrics.
            let connections = Double(server.process.all.count)
            _ = try server.metrics { $0["onward_connections"] == connections + 1 }
            connection.endOutput()
            let last = try server.metrics { $0.requests == 1 }
            #expect(last["onward_http_received_bytes_total"] == Double(20 << 20))
            _ = try server.metrics { $0["onward_connections"] == connections }
        }
    }

    @Test("With tokens, /metrics requires the scope read, and a prefix that permits /metrics")
    func tokens() throws {
        let fixture = try TokenFixture(
            """
            all token-all-0123456789abcdef
            watch token-watch-0123456789abcdef read prefix=/metrics/
            reader token-reader-0123456789abcdef read prefix=/files/x/
            writer token-writer-0123456789abcdef create
            """)
        func status(_ token: String?) throws -> Int {
            try fixture.server.exchange(Request.get("/metrics").with(token: token)).status
        }
        #expect(try status(nil) == 401)
        #expect(try status("token-all-0123456789abcdef") == 200)
        #expect(try status("token-watch-0123456789abcdef") == 200)
        #expect(try status("token-reader-0123456789abcdef") == 403)
        #expect(try status("token-writer-0123456789abcdef") == 403)
        let file = Request.get("/files/f").with(token: "token-watch-0123456789abcdef")
        #expect(try fixture.server.exchange(file).status == 403)
    }

    @Test("--public-read applies to files: /metrics requires the same tokens as without it", arguments: [true, false])
    func publicRead(_ isPublic: Bool) throws {
        let tokens = [
            ("all", "", 200), ("reader", "read", 200), ("watch", "read prefix=/metrics/", 200),
            ("both", "read prefix=/files/x/ prefix=/metrics/", 200), ("box", "read prefix=/files/x/", 403),
            ("maker", "create", 403), ("writer", "write", 403), ("makerWatch", "create,write prefix=/metrics/", 403),
        ]
        let lines = tokens.map { "\($0.0) token-of-\($0.0)-0123456789abcdef \($0.1)" }.joined(separator: "\n")
        let fixture = isPublic ? try TokenFixture(lines, "--public-read") : try TokenFixture(lines)
        func answer(_ method: String, _ token: String?) throws -> Response {
            try fixture.server.exchange(Request(method, "/metrics").with(token: token))
        }
        for method in ["GET", "HEAD"] {
            let stranger = try answer(method, nil)
            #expect(stranger.status == 401)
            #expect(stranger.value("WWW-Authenticate")?.hasPrefix("Bearer ") == true)
            #expect(try answer(method, "token-of-nobody-0123456789abcdef").status == 401)
            for (name, scopes, status) in tokens {
                #expect(try answer(method, "token-of-\(name)-0123456789abcdef").status == status, "\(scopes)")
            }
        }
        #expect(try answer("GET", nil).problem?.code == "missing-token")
        #expect(try fixture.server.exchange(.get("/files/")).status == (isPublic ? 200 : 401))
    }

    @Test("Without tokens, only requests from this machine may read /metrics, and only with GET and HEAD")
    func anonymous() throws {
        try withServer { server in
            #expect(try server.exchange(Request("GET", "/metrics", [("Host", "evil.example")])).status == 403)
            #expect(try server.exchange(Request("GET", "/metrics", [("X-Forwarded-For", "10.0.0.1")])).status == 403)
            let answer = try server.exchange(.get("/metrics"))
            #expect(answer.value("Content-Type") == "text/plain; version=0.0.4; charset=utf-8")
            #expect(answer.value("Cache-Control") == "no-store")
            #expect(try server.exchange(Request("HEAD", "/metrics")).status == 200)
            let post = try server.exchange(Request("POST", "/metrics", [], .bytes([])))
            #expect(post.status == 405)
            #expect(Set(post.list("Allow")) == ["get", "head"])
        }
    }

    @Test("The metrics contain no file name, no principal and no upload's secret")
    func secrets() throws {
        let fixture = try TokenFixture("somebody token-all-0123456789abcdef")
        func exchange(_ request: Request) throws -> Response {
            try fixture.server.exchange(request.with(token: "token-all-0123456789abcdef"))
        }
        let creation = Request.creation(.v8, "PUT", "/files/secret-name", complete: false, .bytes([1]))
        let location = try #require(try exchange(creation).location)
        _ = try exchange(.get("/secret-name" + location))
        let text = try exchange(.get("/metrics")).text
        let secret = try #require(location.split(separator: "/").last)
        for word in ["secret-name", "somebody", "token-all", String(secret), String(secret.prefix(8))] {
            #expect(!text.contains(word))
        }
    }
}
