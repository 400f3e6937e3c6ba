import ConformanceKit
import Digests
import Foundation
import SystemCalls
import TestSupport
import Testing

@Suite(
    "onward check beside several servers", .blocking, .enabled(if: Cluster.isPossible, "\(Cluster.requirement)"))
struct ClusterCheckTests {
    private static let content = BytePool.repeated(0..<20_000_000)

    private func put(_ node: ServerProcess, _ name: String, _ count: Int) throws {
        let content = Array(Self.content[..<count])
        #expect(try node.exchange(Request("PUT", "/files/\(name)", [], .bytes(content))).status == 201)
    }

    @Test("lost and cut objects, missing pieces, and what is left behind are each listed")
    func findings() throws {
        try withCluster(2) { cluster in
            let nodes = cluster.nodes
            try put(nodes[0], "dir/missing", 20_000_000)
            try put(nodes[1], "cut", 1_000_000)
            try put(nodes[0], "pieces", 10)
            try put(nodes[0], "good", 200_000)
            try put(nodes[1], "empty", 0)
            _ = try nodes[0].begin(.v8, "/files/part", Array(Self.content[..<9_000_000]), length: 20_000_000)
            try cluster.run(["check"]).expectOutput(
                "checked uploads: 1, unfinished: 1; checked files: 5; no damage\n")

            let (bucket, storage, database) = (cluster.bucket, cluster.storage, cluster.database)
            let missing = try cluster.objects(of: "missing")
            #expect(missing.count == 3)
            try storage.change(missing[1], in: bucket, to: nil)
            let cut = try cluster.objects(of: "cut")
            try storage.change(cut[0], in: bucket, to: [1, 2, 3])
            _ = try database.query(
                "DELETE FROM onward.piece WHERE blob = (SELECT blob FROM onward.name WHERE name = 'pieces')")
            let part = try #require(
                try database.query(
                    "SELECT p.object FROM onward.piece p JOIN onward.upload u ON u.blob = p.blob ORDER BY start"
                ).first)
            try storage.change(part, in: bucket, to: nil)
            // The servers delete garbage every minute, unless another one has claimed it.
            _ = try database.query(
                """
                INSERT INTO onward.garbage (object, since, claimed_until)
                    VALUES ('data/old/1-1', now() - interval '3 days', now() + interval '1 hour'), ('data/new/1-1', now(), NULL);
                INSERT INTO onward.piece (blob, start, size, data) VALUES ('unneeded', 0, 3, 'abc');
                """)
            for key in ["data/orphan/9999-1", "data/by-hand", "probe/9999"] {
                try storage.change(key, in: bucket, to: [1, 2, 3, 4])
            }

            let check = try cluster.run(["check"])
            #expect(check.ending == .exited(74), "\(check.output)")
            let lines = check.output.split(separator: "\n").map(String.init)
            let blob = part.split(separator: "/")[1]
            for (start, words) in [
                ("damage: file-unreadable: files/dir/missing: ", ["1 missing", missing[1]]),
                ("damage: file-unreadable: files/cut: ", ["1 too short", cut[0]]),
                ("damage: file-unreadable: files/pieces: ", ["10 bytes", "have 0"]),
                ("damage: bytes-missing: data/\(blob): ", ["1 missing", "upload:"]),
                ("note: bytes-unknown: data/orphan/9999-1: ", ["4 bytes", "within a day"]),
                ("note: bytes-unknown: data/by-hand: ", ["none deletes it"]),
                ("note: bytes-unknown: data/unneeded: ", ["3 bytes"]),
                ("note: bytes-unknown: probe/9999: ", []),
                ("note: garbage-overdue: data/old/1-1: ", ["72 hours"]),
            ] as [(String, [String])] {
                let line = lines.first { $0.hasPrefix(start) } ?? ""
                #expect(!line.isEmpty && words.allSatisfy { line.contains($0) }, "\(start): \(check.output)")
            }
            #expect(lines.count == 10, "\(check.output)")
            #expect(lines.last?.hasSuffix("checked files: 5; damage findings: 4") == true, "\(check.output)")

            let objects = try cluster.run(["check", "--json", "--digests"]).output.split(separator: "\n").map {
                try #require(JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
            }
            let findings = objects.filter { $0["event"] as? String == "finding" }
            #expect(findings.count { $0["severity"] as? String == "damage" } == 4 + 3, "\(objects)")
            let digests = objects.filter { $0["event"] as? String == "digest" }
            #expect(digests.map { $0["path"] as? String } == ["files/empty", "files/good"], "\(objects)")
            var digest = RunningDigest(.sha256)
            Self.content[..<200_000].withUnsafeBytes { digest.update($0) }
            #expect(digests.last?["sha-256"] as? String == digest.finalized().hexadecimal)
            let summary = try #require(objects.last)
            #expect(summary["event"] as? String == "checked" && summary["files"] as? Int == 5, "\(summary)")
        }
    }

    @Test("a check finds nothing while clients upload, and no damage after a server was killed")
    func besideUploads() throws {
        try withCluster(2) { cluster in
            let world = ClusterClient.World(ports: cluster.nodes.map(\.port))
            let failure = Monitor<(any Error)?>(nil)
            let threads = try (0..<4).map { number in
                try WorkerThread(name: "client-\(number)") {
                    var client = ClusterClient(number, world: world, seed: 21)
                    do { try client.run() } catch { failure.withLock { $0 = $0 ?? error } }
                }
            }
            for _ in 0..<4 {
                let completed = world.completed.count
                let check = try cluster.run(["check"])
                #expect(check.ending == .exited(0) && check.output.hasPrefix("checked uploads:"), "\(check.output)")
                #expect(eventually { world.completed.count > completed })
            }
            try cluster.nodes[0].crash()
            let check = try cluster.run(["check"])
            #expect(check.ending == .exited(0), "\(check.output)")
            try cluster.nodes[0].restart()
            world.end()
            for thread in threads { thread.join() }
            if let error = failure.withLock({ $0 }) { throw error }
        }
    }

    @Test("a check of an unused database, of a foreign bucket, and without a connection ends with the reason")
    func failures() throws {
        try withCluster(1) { cluster in
            let node = cluster.nodes[0]
            let uri = cluster.catalog[1]
            let environment = cluster.storage.environment
            func check(_ catalog: String, _ blobs: String) throws -> OnwardRun {
                try OnwardRun(["check", "--catalog", catalog, "--blobs", blobs], environment: environment)
            }
            try check(uri.dropLast("postgres".count) + "template1", cluster.bucket).expect(74, "no server has used")
            let other = try PostgreSQLCluster()
            let second = try ServerProcess(
                environment: environment,
                storage: [
                    "--catalog", "postgresql://postgres@127.0.0.1:\(other.port)/postgres", "--blobs",
                    try cluster.storage.newBucket(),
                ])
            try second.awaitReadiness()
            try check(second.storage[1], cluster.bucket).expect(74, "another database uses the bucket")
            cluster.database.kill()
            try check(uri, cluster.bucket).expect(75, "cannot be reached", "refused")
            try cluster.database.start()
            try node.awaitReadiness()
            let wrong = try OnwardRun(
                ["check"] + node.storage, environment: environment.merging(["AWS_SECRET_ACCESS_KEY": "WRONGKEY"]) { $1 }
            )
            wrong.expect(74, "403")
            #expect(!wrong.output.contains("WRONGKEY"))
            try OnwardRun(["check", "--catalog", uri]).expect(64, "--blobs")
            try OnwardRun(["check", "--root", "x"] + node.storage).expect(64, "cannot be combined")
        }
    }
}
