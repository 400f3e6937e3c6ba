import ConformanceKit
import Foundation
import SystemCalls
import TestSupport
import Testing

@Suite(
    "The log and the metrics of several servers", .blocking,
    .enabled(if: Cluster.isPossible, "\(Cluster.requirement)"))
struct ClusterOperationTests {
    private static let content = BytePool.repeated(0..<5_000_000)

    /// The messages of a log in JSON that do not belong to a request.
    private func messages(_ server: ServerProcess) -> [String] {
        server.log.split(separator: "\n").compactMap { line in
            let object = try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
            return object?["request"] == nil ? object?["message"] as? String : nil
        }
    }

    @Test("the log has an error of the storage once, with its status, code and message, and no secret")
    func refusedStorage() throws {
        try withCluster(1) { cluster in
            let node = try ServerProcess(
                ["--log-format", "json"],
                environment: ["AWS_ACCESS_KEY_ID": "ACCESSKEY", "AWS_SECRET_ACCESS_KEY": "WRONG-SECRET-0123"],
                storage: cluster.nodes[0].storage)
            let connection = try node.connect()
            for number in 0..<10 {
                let request = Request("PUT", "/files/\(number)", [], .bytes(Array(Self.content[..<100_000])))
                let status = try connection.exchange(request).status
                #expect(status == 500 || status == 503, "\(status)")
            }
            let refusals = messages(node).filter { $0.hasPrefix("the object storage has refused the request") }
            #expect(refusals.count == 1, "\(refusals)")
            let text = refusals.first ?? ""
            for word in ["status 403", "SignatureDoesNotMatch: "] { #expect(text.contains(word), "\(text)") }
            let activities = ["storing an object)", "listing objects)", "reading an object)"]
            #expect(activities.contains { text.hasSuffix($0) }, "\(text)")
            #expect(!node.log.contains("WRONG-SECRET"))
            let metrics = try node.metrics()
            // Before its first object, the server verifies that the storage belongs to its database.
            #expect(metrics["onward_object_requests_total{operation=\"get\",result=\"refused\"}"] >= 10)
            #expect(metrics["onward_object_requests_total{operation=\"put\",result=\"done\"}"] == 0)
        }
    }

    @Test("the log has the failure and the return of the database once, and the metrics have the lost session")
    func database() throws {
        try withCluster(1, ["--log-format", "json"]) { cluster in
            let node = cluster.nodes[0]
            #expect(try node.metrics()["onward_session_alive"] == 1)
            cluster.database.kill()
            for number in 0..<10 {
                #expect(try node.exchange(Request("PUT", "/files/\(number)", [], .bytes([1]))).status == 503)
            }
            // The numbers can be read although the database cannot be reached.
            let without = try node.metrics { $0["onward_session_alive"] == 0 }
            #expect(without["onward_session_remaining_seconds"] == 0)
            #expect(without["onward_session_renewals_total{result=\"failed\"}"] >= 1)
            #expect(without["onward_database_transactions_total{result=\"unavailable\"}"] >= 10)
            try cluster.database.start()
            try node.awaitReadiness()
            #expect(eventually { messages(node).contains { $0.hasPrefix("the database works again; ") } })
            let all = messages(node)
            #expect(all.count { $0.hasPrefix("the database is unavailable: ") } == 1, "\(all)")
            #expect(all.count { $0.hasPrefix("the database works again; ") } == 1, "\(all)")
            let metrics = try node.metrics()
            #expect(metrics["onward_session_alive"] == 1 && metrics["onward_sessions_lost_total"] == 1)
        }
    }

    @Test("metrics count sessions, holds, requests to the storage, transactions and garbage")
    func metrics() throws {
        try withCluster(2, ["--idle-timeout", "1h"]) { cluster in
            let (first, second) = (cluster.nodes[0], cluster.nodes[1])
            let stuck = try first.connect()
            try stuck.send(.creation(.v8, "PUT", "/files/a", complete: true, .declared(5_000_000)))
            let location = try #require(try stuck.requireInterim().location)
            try stuck.send(Self.content[..<3_000_000])
            let held = try first.metrics { $0["onward_uploads_held"] == 1 }
            #expect(held["onward_session_remaining_seconds"] > 0 && held["onward_session_remaining_seconds"] <= 13)
            let offset: Int64? = try pollUntil(within: .seconds(60)) {
                let response = try second.retrieve(location)
                return response.status == 204 ? response.offset : nil
            }
            let received = Int(try #require(offset))
            _ = try first.metrics {
                $0["onward_holds_released_on_request_total"] == 1 && $0["onward_uploads_held"] == 0
            }
            let response = try second.exchange(
                .append(.v8, location, at: received, complete: true, .bytes(Array(Self.content[received...]))))
            #expect(response.status == 201)
            let taken = try second.metrics { $0["onward_session_renewals_total{result=\"renewed\"}"] >= 1 }
            #expect(taken["onward_holds_acquired_total"] >= 1 && taken["onward_hold_requests_waiting"] == 0)
            #expect(taken["onward_session_alive"] == 1 && taken["onward_sessions_lost_total"] == 0)
            #expect(taken["onward_database_transactions_total{result=\"committed\"}"] > 0)
            #expect(taken["onward_database_transaction_duration_seconds_count"] > 0)
            let before = try first.metrics()
            let objects = "onward_object_requests_total{operation=\"put\",result=\"done\"}"
            let bytes = "onward_object_bytes_total{operation=\"put\"}"
            for _ in 0..<2 {
                let body = Request.Content.bytes(Array(Self.content[..<100_000]))
                #expect(try first.exchange(Request("PUT", "/files/b", [], body)).status / 100 == 2)
            }
            // A check of /readyz can store an empty object.
            let after = try first.metrics { $0["onward_garbage_objects"] == before["onward_garbage_objects"] + 1 }
            #expect(after[objects] - before[objects] >= 2 && after[bytes] - before[bytes] == 200_000)
            #expect(after["onward_object_request_duration_seconds_count{operation=\"put\"}"] == after[objects])
            #expect(after["onward_garbage_oldest_age_seconds"] < 3600)
            #expect(try first.exchange(.get("/files/b")).content.count == 100_000)
            let read = "onward_object_bytes_total{operation=\"get\"}"
            #expect(try first.metrics()[read] - after[read] >= 100_000)
            #expect(after["onward_collections_total{result=\"done\"}"] >= 1)
        }
    }

    @Test("a server with a copy of the database is not ready, because servers of the original have changed the mark")
    func copiedDatabase() throws {
        try withCluster(1) { cluster in
            let (original, database) = (cluster.nodes[0], cluster.database)
            let copy = try PostgreSQLCluster(isDurable: true, copying: database)
            _ = try database.query("ALTER SYSTEM RESET synchronous_standby_names")
            _ = try database.query("SELECT pg_reload_conf()")
            try copy.promote()
            // The servers of the original do the same every few minutes.
            let owner = try #require(
                try database.query(
                    """
                    INSERT INTO onward.mark (number) SELECT max(number) + 1 FROM onward.mark
                        RETURNING (SELECT identity FROM onward.identity) || ' ' || mark
                    """
                ).first)
            try cluster.storage.change("cluster", in: cluster.bucket, to: Array(owner.utf8))

            let storage = [
                "--catalog", "postgresql://postgres@127.0.0.1:\(copy.port)/postgres", "--blobs", cluster.bucket,
            ]
            let server = try ServerProcess(environment: cluster.storage.environment, storage: storage)
            let response: Response? = pollUntil(within: .seconds(60)) {
                (try? server.exchange(.get("/readyz"))).flatMap {
                    $0.problem?.reasons?.contains("foreign-data") == true ? $0 : nil
                }
            }
            #expect(response?.status == 503, "\(server.log.suffix(2000))")
            for words in ["another copy of this database", "delete the object 'cluster'"] {
                #expect(server.log.contains(words), "\(server.log.suffix(2000))")
            }
            #expect(try server.exchange(Request("PUT", "/files/f", [], .bytes(Self.content))).status >= 500)
            // A check changes nothing.
            try OnwardRun(["check"] + storage, environment: cluster.storage.environment).expectOutput(
                "checked uploads: 0, unfinished: 0; checked files: 0; no damage\n")

            #expect(try original.exchange(Request("PUT", "/files/f", [], .bytes(Self.content))).status == 201)
            #expect(try original.exchange(.get("/readyz")).status == 200)

            // An operator decides for the copy.
            original.process.kill(SIGKILL)
            server.process.kill(SIGKILL)
            try cluster.storage.change("cluster", in: cluster.bucket, to: nil)
            try ServerProcess(environment: cluster.storage.environment, storage: storage).awaitReadiness()
        }
    }
}
