import ConformanceKit
import Glibc
import SystemCalls
import TestSupport
import Testing

@Suite(
    "Copying a data directory to a cluster and back", .blocking,
    .enabled(if: Cluster.isPossible, "\(Cluster.requirement)"))
struct MigrationTests {
    private static let content = BytePool.repeated(0..<10_000_000)

    /// The result of `onward migrate`.
    private struct Outcome {
        var status: ProgramRun.Outcome
        var output: String
        var errors: String
    }

    private func migrate(_ cluster: Cluster, _ root: String, back: Bool = false) throws -> Outcome {
        let run = ProgramRun(
            try ExecutableLocation.onward(),
            arguments: ["migrate", "--root", root] + cluster.nodes[0].storage + (back ? ["--back"] : []),
            variables: cluster.storage.environment.map { ($0.key, $0.value) }, timeout: .seconds(120))
        let result = run.run()
        return Outcome(
            status: result.outcome, output: String(decoding: result.output, as: UTF8.self),
            errors: String(decoding: result.errors, as: UTF8.self))
    }

    @Test("files, unfinished uploads and stored responses are the same at a cluster, and back in a directory")
    func migration() throws {
        let directory = try ServerProcess()
        let part = try directory.begin(
            .v8, "/files/part", Array(Self.content[..<4_000_000]), length: Self.content.count)
        #expect(try directory.exchange(Request("PUT", "/files/a/whole", [], .bytes(Self.content))).status == 201)
        let done = try directory.exchange(.creation(.v8, "PUT", "/files/done", complete: true, .bytes([1, 2, 3])))
        let finished = try #require(done.interim.compactMap(\.location).first)
        try withCluster(2) { cluster in
            let inUse = try migrate(cluster, directory.root)
            #expect(inUse.status == .ended(.exited(75)))
            #expect(inUse.errors.contains("stop it first"))
            _ = try directory.stop()

            let copy = try migrate(cluster, directory.root)
            #expect(copy.status == .ended(.exited(0)), "\(copy.errors)")
            #expect(
                copy.output.hasPrefix("copied files: 2, unfinished uploads: 1, stored responses: 1,"), "\(copy.output)")
            let again = try migrate(cluster, directory.root)
            #expect(again.status == .ended(.exited(0)), "\(again.errors)")
            #expect(again.output.hasPrefix("copied files: 0, unfinished uploads: 0, stored responses: 0,"))

            #expect(try cluster.nodes[0].exchange(.get("/files/a/whole")).content == Self.content)
            #expect(try cluster.nodes[1].retrieve(part).offset == 4_000_000)
            #expect(try cluster.nodes[1].retrieve(finished).complete == true)
            let next = try cluster.nodes[0].exchange(
                .append(
                    .v8, part, at: 4_000_000, complete: false, .bytes(Array(Self.content[4_000_000..<6_000_000]))))
            #expect(next.offset == 6_000_000)

            let busy = try migrate(cluster, directory.root + "-2", back: true)
            #expect(busy.status == .ended(.exited(75)), "\(busy.errors)")
            for node in cluster.nodes { _ = try node.stop() }
            let returned = try migrate(cluster, directory.root + "-2", back: true)
            #expect(returned.status == .ended(.exited(0)), "\(returned.errors)")
            let second = try ServerProcess(storage: ["--root", directory.root + "-2"])
            #expect(try second.exchange(.get("/files/a/whole")).content == Self.content)
            let last = try second.exchange(
                .append(.v8, part, at: 6_000_000, complete: true, .bytes(Array(Self.content[6_000_000...]))))
            #expect(last.status == 201)
            #expect(try second.exchange(.get("/files/part")).content == Self.content)
            // As long as such a copy runs, no server starts.
            _ = try cluster.database.query(
                """
                INSERT INTO onward.node (name, is_exclusive, alive_until)
                VALUES ('copy', true, clock_timestamp() + interval '29 seconds')
                """)
            try cluster.run(["serve", "--listen", "127.0.0.1:0"]).expect(75, "'onward migrate --back' copies")
        }
    }

    @Test("a database that cannot be reached is a temporary failure, as for the other commands")
    func unreachableDatabase() throws {
        let directory = try ServerProcess()
        _ = try directory.stop()
        let place = "127.0.0.1:\(try FixedPort.next())"
        let storage = [
            "--catalog", "postgresql://postgres@\(place)/postgres", "--blobs", "s3://bucket?endpoint=http://\(place)",
        ]
        let keys = ["AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"]
        try OnwardRun(["migrate", "--root", directory.root] + storage, environment: keys).expect(
            75, "no session", "refused")
        try OnwardRun(["check"] + storage, environment: keys).expect(75, "cannot be reached")
    }

    /// The number of files and unfinished uploads that the database has.
    private func copied(_ cluster: Cluster) throws -> Int {
        let rows = try cluster.database.query(
            """
            SELECT (SELECT count(*) FROM onward.name WHERE NOT is_directory)
              + (SELECT count(*) FROM onward.upload WHERE phase < 2)
            """)
        return rows.first.flatMap { Int($0) } ?? 0
    }

    @Test("a copy that was killed several times is completed by the next run, and each file is counted once")
    func kills() throws {
        let directory = try ServerProcess()
        var random = SeededGenerator(seed: SeededGenerator.runSeed)
        var files: [String: Range<Int>] = [:]
        for number in 0..<40 {
            let count = number.isMultiple(of: 8) ? 3_000_000 : Int.random(in: 0...200_000, using: &random)
            let start = Int.random(in: 0...Self.content.count - count, using: &random)
            let target = "/files/d\(number % 3)/\(number)"
            files[target] = start..<start + count
            let body = Array(Self.content[start..<start + count])
            try #require(try directory.exchange(Request("PUT", target, [], .bytes(body))).status == 201)
        }
        let parts = try [1_000_000, 2_000_000, 5_000_000].map { count in
            let location = try directory.begin(
                .v8, "/files/part\(count)", Array(Self.content[..<count]), length: Self.content.count)
            return (location, count)
        }
        _ = try directory.stop()
        try withCluster(2) { cluster in
            var kills = 0
            for _ in 0..<(PostgreSQLCluster.isRequired ? 15 : 4) {
                let run = try ChildProcess(
                    try ExecutableLocation.onward(), ["migrate", "--root", directory.root] + cluster.nodes[0].storage,
                    environment: cluster.storage.environment)
                // Some files more are copied, and it is killed at any point of the copy of the next one.
                let next = try copied(cluster) + Int.random(in: 0...3, using: &random)
                _ = try pollUntil(within: .seconds(60)) {
                    try run.ending != nil || copied(cluster) >= next ? true : nil
                }
                SystemClock.pause(nanoseconds: .random(in: 0...60_000_000, using: &random))
                run.kill(SIGKILL)
                let ending = try run.awaitEnding()
                // The command may have ended before the kill.
                #expect(ending == .signaled(SIGKILL) || ending == .exited(0), "\(run.errorOutput)")
                if ending == .signaled(SIGKILL) { kills += 1 }
            }
            let last = try migrate(cluster, directory.root)
            #expect(last.status == .ended(.exited(0)), "\(last.errors)")
            print("after \(kills) kills: \(last.output)")
            for (target, range) in files {
                let isCopied = try areEqual(cluster.nodes[0].exchange(.get(target)).content, Self.content[range])
                #expect(isCopied, "\(target)")
            }
            let counted = try cluster.database.query(
                """
                SELECT (SELECT count(*) FROM onward.name WHERE NOT is_directory), sum(published), sum(uploads)
                FROM onward.current_usage(NULL)
                """)
            #expect(counted == ["40|\(files.values.reduce(0) { $0 + $1.count })|3"])
            for (location, count) in parts {
                #expect(try cluster.nodes[1].retrieve(location).offset == Int64(count))
                let response = try cluster.nodes[1].exchange(
                    .append(.v8, location, at: count, complete: true, .bytes(Array(Self.content[count...]))))
                #expect(response.status == 201)
                #expect(try cluster.nodes[0].exchange(.get("/files/part\(count)")).content == Self.content)
            }
        }
    }
}
