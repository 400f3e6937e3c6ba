import ConformanceKit
import Glibc
import SystemCalls
import TestSupport
import Testing

@Suite(
    "Several servers with one database and one object storage", .blocking,
    .enabled(if: Cluster.isPossible, "\(Cluster.requirement)"))
struct ClusterTests {
    private static let content = BytePool.repeated(0..<30_000_000)

    private func append(
        _ node: ServerProcess, _ location: String, from offset: Int, to end: Int? = nil, complete: Bool? = nil
    ) throws -> Response {
        let end = end ?? Self.content.count
        return try node.exchange(
            .append(
                .v8, location, at: offset, complete: complete ?? (end == Self.content.count),
                .bytes(Array(Self.content[offset..<end]))))
    }

    @Test("an upload continues at another server, and every server serves the file with the same entity tag")
    func resume() throws {
        try withCluster(3) { cluster in
            let nodes = cluster.nodes
            let location = try nodes[0].begin(
                .v8, "/files/a/b.bin", Array(Self.content[..<12_000_000]), length: Self.content.count)
            #expect(try nodes[1].retrieve(location).offset == 12_000_000)
            #expect(try append(nodes[1], location, from: 12_000_000, to: 12_000_001).offset == 12_000_001)
            #expect(try append(nodes[2], location, from: 12_000_001, to: 21_000_000).offset == 21_000_000)
            let last = try append(nodes[0], location, from: 21_000_000)
            #expect(last.status == 201)
            #expect(last.complete == true)
            // The response is repeated by a server that has never seen the upload.
            #expect(try nodes[1].retrieve(location).complete == true)
            let responses = try nodes.map { try $0.exchange(.get("/files/a/b.bin")) }
            for response in responses {
                #expect(response.status == 200)
                #expect(response.content == Self.content)
                #expect(response.fields["ETag"] == responses[0].fields["ETag"])
            }
            var range = Request.get("/files/a/b.bin")
            range.fields.append(("Range", "bytes=8388600-16777300"))
            range.fields.append(("If-Range", responses[0].fields["ETag"] ?? ""))
            let part = try nodes[2].exchange(range)
            #expect(part.status == 206)
            #expect(part.content == Array(Self.content[8_388_600...16_777_300]))
        }
    }

    @Test("bytes in an object after the recorded offset, as an interruption leaves them, are not a part of the file")
    func bytesBeyondOffset() throws {
        let shared = try SharedStorage()
        let server = try ServerProcess(environment: shared.environment, storage: shared.options)
        let (offset, length) = (9_400_000, 9_600_000)
        let location = try server.begin(
            .v8, "/files/file.bin", [UInt8](repeating: 0xEE, count: 9_500_000), length: length)
        try server.crash()
        try shared.endSessions()
        try shared.database.query(#"UPDATE onward.upload SET "offset" = \#(offset)"#)
        try server.restart()
        #expect(try server.retrieve(location).offset == Int64(offset))
        #expect(try append(server, location, from: offset, to: length, complete: true).status == 201)
        let expected = [UInt8](repeating: 0xEE, count: offset) + Self.content[offset..<length]
        #expect(try server.exchange(.get("/files/file.bin")).content == expected)
        #expect(try shared.published("file.bin") == expected)
    }

    @Test(
        "CON-06: HEAD at another server ends a stuck upload, with all bytes that its server has received",
        arguments: Cluster.poolers)
    func takeOver(_ features: Cluster.Features) throws {
        var times: [Duration] = []
        try withCluster(2, ["--idle-timeout", "1h"], features) { cluster in
            // The 99th percentile leaves out two of 200 rounds.
            for round in 0..<(PostgreSQLCluster.isRequired ? 200 : 3) {
                let stuck = try cluster.nodes[0].connect()
                try stuck.send(.creation(.v8, "PUT", "/files/\(round)", complete: true, .declared(6_000_000)))
                let location = try #require(try stuck.requireInterim().location)
                try stuck.send(Self.content[..<5_000_000])
                let start = ContinuousClock.now
                let offset: Int64? = try pollUntil(within: .seconds(30)) {
                    let response = try cluster.nodes[1].retrieve(location)
                    if response.status == 204 { return response.offset }
                    // The storage may stall. The time until the offset is known includes the repetitions.
                    print("HEAD at another server, round \(round): \(response.status) \(response.problem?.code ?? "")")
                    #expect(response.status == 503 && response.fields["Retry-After"] != nil, "\(response)")
                    return nil
                }
                times.append(ContinuousClock.now - start)
                let received = Int(try #require(offset))
                _ = try stuck.awaitClosing(within: .seconds(60))
                let last = try cluster.nodes[1].exchange(
                    .append(
                        .v8, location, at: received, complete: true,
                        .bytes(Array(Self.content[received..<6_000_000]))))
                #expect(last.status == 201)
                #expect(
                    try cluster.nodes[0].exchange(.get("/files/\(round)")).content == Array(Self.content[..<6_000_000]))
            }
        }
        times.sort()
        guard let median = times.dropFirst(times.count / 2).first, let longest = times.last else { return }
        let percentile = times[(times.count * 99 + 99) / 100 - 1]
        print(
            """
            HEAD at another server, \(times.count) times \(features.testDescription): \
            median \(median), 99th percentile \(percentile), longest \(longest)
            """)
        if PostgreSQLCluster.isRequired { #expect(percentile < .seconds(1)) }
    }

    @Test(
        "a server that listens through PgBouncer is not ready, because no notification arrives there",
        .enabled(if: PgBouncer.isInstalled, "needs pgbouncer"))
    func listeningThroughPooler() throws {
        try withCluster(1, [], Cluster.Features(hasPooler: true)) { cluster in
            // The same options without --catalog-direct.
            let node = try ServerProcess(
                [], environment: cluster.storage.environment, storage: Array(cluster.nodes[0].storage.prefix(4)))
            defer { node.process.kill(SIGKILL) }
            try node.awaitLog("set --catalog-direct")
            let response = try node.exchange(.get("/readyz"))
            #expect(response.status == 503 && response.problem?.reasons == ["notifications-missing"])
            #expect(try node.exchange(.get("/healthz")).status == 200)
            #expect(try cluster.nodes[0].exchange(.get("/readyz")).status == 200)
        }
    }

    @Test("an upload whose server was killed continues at another server after the lease has ended")
    func killed() throws {
        try withCluster { cluster in
            let connection = try cluster.nodes[0].connect()
            try connection.send(.creation(.v8, "PUT", "/files/k", complete: true, .declared(30_000_000)))
            let location = try #require(try connection.requireInterim().location)
            var (sent, reported) = (0, Int64(0))
            while reported == 0, sent < 20_000_000 {
                try connection.send(Self.content[sent..<sent + 500_000])
                sent += 500_000
                if !connection.staysSilent(for: .milliseconds(300)) {
                    reported = try connection.requireInterim().offset ?? 0
                }
            }
            #expect(reported > 0)
            try cluster.nodes[0].crash()
            let start = ContinuousClock.now
            let offset: Int64? = try pollUntil(within: .seconds(30)) {
                let response = try cluster.nodes[1].retrieve(location)
                if response.status == 503 { #expect(response.fields["Retry-After"] != nil) }
                return response.status == 204 ? response.offset : nil
            }
            let elapsed = ContinuousClock.now - start
            print("HEAD after the death of a server: \(elapsed)")
            #expect(elapsed < .seconds(20))
            let received = try #require(offset)
            #expect(received >= reported)
            #expect(try append(cluster.nodes[1], location, from: Int(received)).status == 201)
            #expect(try cluster.nodes[1].exchange(.get("/files/k")).content == Self.content)
        }
    }

    @Test("a server that was stopped for longer than its lease changes nothing when it continues")
    func stopped() throws {
        try withCluster { cluster in
            let stuck = try cluster.nodes[0].connect()
            try stuck.send(.creation(.v8, "PUT", "/files/s", complete: true, .declared(30_000_000)))
            let location = try #require(try stuck.requireInterim().location)
            try stuck.send(Self.content[..<3_000_000])
            cluster.nodes[0].process.kill(SIGSTOP)
            let offset: Int64? = try pollUntil(within: .seconds(30)) {
                let response = try cluster.nodes[1].retrieve(location)
                return response.status == 204 ? response.offset : nil
            }
            let received = Int(try #require(offset))
            #expect(
                try append(cluster.nodes[1], location, from: received, to: 10_000_000, complete: false).offset
                    == 10_000_000)
            cluster.nodes[0].process.kill(SIGCONT)
            // The client of the stopped node continues to send content at its old position.
            _ = stuck.sendUntilRefused([UInt8](repeating: 0xEE, count: 20_000_000), within: .seconds(5))
            let seen: Int64? = try pollUntil(within: .seconds(30)) {
                let response = try cluster.nodes[0].retrieve(location)
                return response.status == 204 ? response.offset : nil
            }
            #expect(seen == 10_000_000)
            #expect(try append(cluster.nodes[0], location, from: 10_000_000).status == 201)
            #expect(try cluster.nodes[1].exchange(.get("/files/s")).content == Self.content)
        }
    }

    @Test("a database that was killed and started again loses no acknowledged byte, and clients get 503 meanwhile")
    func databaseRestart() throws {
        try withCluster(1) { cluster in
            let node = cluster.nodes[0]
            let location = try node.begin(
                .v8, "/files/d", Array(Self.content[..<10_000_000]), length: Self.content.count)
            cluster.database.kill()
            let refused = try append(node, location, from: 10_000_000, to: 12_000_000)
            #expect(refused.status == 503)
            #expect(refused.fields["Retry-After"] != nil)
            #expect(try node.exchange(.get("/readyz")).status == 503)
            #expect(try node.exchange(.get("/healthz")).status == 200)
            try cluster.database.start()
            try node.awaitReadiness()
            let offset = Int(try #require(try node.retrieve(location).offset))
            #expect(offset >= 10_000_000)
            #expect(try append(node, location, from: offset).status == 201)
            #expect(try node.exchange(.get("/files/d")).content == Self.content)
        }
    }

    @Test("of many requests that create the same file at several servers, one succeeds")
    func exclusiveCreation() throws {
        try withCluster(3) { cluster in
            for round in 0..<5 {
                let statuses = Monitor<[Int]>([])
                let threads = try (0..<6).map { client in
                    let port = cluster.nodes[client % 3].port
                    return try WorkerThread(name: "client-\(client)") {
                        var request = Request(
                            "PUT", "/files/one-\(round)", [("If-None-Match", "*")], .bytes([UInt8(client)]))
                        request.fields.append(("Content-Type", "text/plain"))
                        let status = try? RawConnection(port: port).exchange(request).status
                        statuses.withLock { $0.append(status ?? 0) }
                    }
                }
                for thread in threads { thread.join() }
                let sorted = statuses.withLock { $0.sorted() }
                #expect(sorted == [201, 412, 412, 412, 412, 412], "\(sorted)")
            }
        }
    }

    @Test("listings, replacements and removals are the same at every server at once")
    func files() throws {
        try withCluster { cluster in
            let (first, second) = (cluster.nodes[0], cluster.nodes[1])
            for name in ["b", "a", "c d", "ü"] {
                let target = "/files/dir/" + (name == "c d" ? "c%20d" : name == "ü" ? "%C3%BC" : name)
                #expect(try first.exchange(Request("PUT", target, [], .bytes(Array(name.utf8)))).status == 201)
            }
            #expect(try second.exchange(Request("PUT", "/files/dir/a", [], .bytes(Array("new".utf8)))).status == 204)
            #expect(try first.exchange(.get("/files/dir/a")).content == Array("new".utf8))
            #expect(try second.exchange(Request("DELETE", "/files/dir/b")).status == 204)
            #expect(try first.exchange(.get("/files/dir/b")).status == 404)
            var listing = Request.get("/files/dir/")
            listing.fields.append(("Accept", "application/json"))
            let text = String(decoding: try first.exchange(listing).content, as: UTF8.self)
            for name in ["\"a\"", "\"c d\"", "\"ü\""] { #expect(text.contains(name), "\(text)") }
            #expect(!text.contains("\"b\""))
            #expect(try second.exchange(Request("PUT", "/files/dir/a/below", [], .bytes([1]))).status == 409)
            #expect(try second.exchange(Request("PUT", "/files/dir", [], .bytes([1]))).status == 409)
            // A path that is too long for the database is refused before the content arrives.
            let long = "/files/" + (0..<12).map { "\($0)" + String(repeating: "x", count: 239) }.joined(separator: "/")
            for (method, target) in [("PUT", long), ("POST", long + "/")] {
                let connection = try first.connect()
                try connection.send(Request(method, target, [], .declared(100_000_000)))
                let refused = try connection.readResponse()
                #expect(refused.status == 414 && refused.problem?.code == "path-too-long", "\(refused)")
            }
            // No file has this path, as with a data directory.
            for method in ["GET", "HEAD", "DELETE"] {
                #expect(try first.exchange(Request(method, long)).status == 404, "\(method)")
            }
            #expect(try first.exchange(.get(long + "/")).status == 404)
        }
    }

    @Test(
        "servers of an older version continue, and start again, after a newer one has changed the tables; they refuse to start if it cannot work with them"
    )
    func newerSchema() throws {
        try withCluster(2) { cluster in
            let (first, second) = (cluster.nodes[0], cluster.nodes[1])
            let location = try first.begin(
                .v8, "/files/n", Array(Self.content[..<12_000_000]), length: Self.content.count)
            // The changes of newer versions: `oldest` is the oldest version that can use the new tables.
            func migrate(oldest: String) throws {
                let tables = ["node", "upload", "piece", "name", "event", "usage"]
                let columns = tables.map { "ALTER TABLE onward.\($0) ADD COLUMN added_\(oldest) text DEFAULT 'x';" }
                _ = try cluster.database.query(
                    """
                    BEGIN; \(columns.joined(separator: " "))
                    INSERT INTO onward.migration (version, oldest)
                        SELECT max(version) + 1, \(oldest == "same" ? "max(oldest)" : "max(version) + 1")
                        FROM onward.migration;
                    COMMIT
                    """)
            }
            try migrate(oldest: "same")
            #expect(try append(second, location, from: 12_000_000, to: 21_000_000).offset == 21_000_000)
            try first.crash()
            try first.restart()
            try first.awaitReadiness()
            #expect(try append(first, location, from: 21_000_000).status == 201)
            for node in cluster.nodes { #expect(areEqual(try node.exchange(.get("/files/n")).content, Self.content)) }
            try migrate(oldest: "new")
            let refused = try ServerProcess.run(
                first.storage + ["--listen", "127.0.0.1:0"], environment: cluster.storage.environment)
            #expect(try refused.awaitEnding() == .exited(74))
            #expect(refused.errorOutput.contains("was written by a newer version of onward"), "\(refused.errorOutput)")
            #expect(try second.exchange(.get("/files/n")).status == 200)
        }
    }

    @Test("the quota of a principal holds over all servers")
    func quota() throws {
        try withCluster(2, ["--quota", "1M"]) { cluster in
            let body = [UInt8](repeating: 1, count: 300_000)
            var statuses: [Int] = []
            for index in 0..<5 {
                statuses.append(
                    try cluster.nodes[index % 2].exchange(Request("PUT", "/files/q\(index)", [], .bytes(body))).status)
            }
            #expect(statuses == [201, 201, 201, 507, 507])
        }
    }

    @Test("a server starts without a database, is not ready, and becomes ready when the database starts")
    func startWithoutDatabase() throws {
        let database = try PostgreSQLCluster()
        let storage = try SeaweedFS.shared()
        database.kill()
        let server = try ServerProcess(
            environment: storage.environment,
            storage: [
                "--catalog", "postgresql://postgres@127.0.0.1:\(database.port)/postgres", "--blobs",
                try storage.newBucket(),
            ])
        #expect(try server.exchange(.get("/healthz")).status == 200)
        #expect(try server.exchange(.get("/readyz")).status == 503)
        #expect(try server.exchange(Request("PUT", "/files/x", [], .bytes([1]))).status == 503)
        try database.start()
        try server.awaitReadiness()
        #expect(try server.exchange(Request("PUT", "/files/x", [], .bytes([1]))).status == 201)
    }

    @Test(
        "settings that contradict a shared storage are refused at the start, with the reason",
        arguments: [
            (["--catalog", "postgresql://h/d"], "--blobs"),
            (["--blobs", "s3://bucket?region=x"], "--catalog"),
            (["--catalog", "postgresql://u:secret@h/d", "--blobs", "s3://bucket?region=x"], "PGPASSFILE"),
            (["--catalog", "postgresql://h/d", "--blobs", "s3://bucket?region=x", "--root", "/tmp/x"], "--root"),
            (
                ["--catalog", "postgresql://h/d", "--blobs", "s3://bucket?region=x", "--durability", "relaxed"],
                "--durability"
            ),
            (["--catalog", "postgresql://h/d", "--blobs", "s3://bucket?region=x", "--min-free", "1G"], "--min-free"),
            (
                [
                    "--catalog", "postgresql://h/d", "--blobs", "s3://bucket?region=x", "--route",
                    "/a=http://127.0.0.1:1,access=open,handover=/srv/x",
                ], "handover="
            ),
        ])
    func refusals(_ options: [String], _ reason: String) throws {
        let process = try ServerProcess.run(options)
        #expect(try process.awaitEnding() == .exited(64))
        #expect(process.errorOutput.contains(reason), "\(process.errorOutput)")
        #expect(!process.errorOutput.contains("secret"))
    }
}
