import ConformanceKit
import FoundationEssentials
import Glibc
import TestSupport
import Testing

@Suite("Many uploads at the same time", .blocking)
struct ManyUploadsTests {
    /// The resources that a process uses.
    private struct Usage {
        var threads: Int
        var descriptors: Int
        var residentKiB: Int

        init(_ process: pid_t) throws {
            let data = try #require(FileManager.default.contents(atPath: "/proc/\(process)/status"))
            var values: [Substring: Int] = [:]
            for line in String(decoding: data, as: UTF8.self).split(separator: "\n") {
                let parts = line.split(whereSeparator: { $0 == ":" || $0 == "\t" || $0 == " " })
                if parts.count > 1 { values[parts[0]] = Int(parts[1]) }
            }
            threads = try #require(values["Threads"])
            residentKiB = try #require(values["VmRSS"])
            descriptors = try FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/fd").count
        }
    }

    @Test(
        "CON-10 CON-07: two hundred stuck uploads use a thread and two descriptors each, and delay no other upload"
    )
    func idle() throws {
        try withServer { server in
            #expect(try server.exchange(.get("/healthz")).status == 200)
            let before = try Usage(server.process.identifier)
            var stalled: [(RawConnection, String)] = []
            for number in 0..<200 {
                let connection = try server.connect()
                try connection.send(
                    .creation(.v8, "PUT", "/files/slow\(number)", complete: true, .declared(100_000)))
                let location = try #require(try connection.requireInterim().location)
                try connection.send(BytePool.repeated(0..<20_000))
                stalled.append((connection, location))
            }
            let port = server.port
            let began = ContinuousClock.now
            _ = try ConcurrentClients.run(4) { client in
                for round in 0..<5 {
                    let response = try RawConnection(port: port).exchange(
                        .creation(
                            .v8, "PUT", "/files/quick\(client)-\(round)", complete: true,
                            .bytes(BytePool.repeated(0..<300_000))),
                        within: .seconds(20))
                    guard response.status == 201 else { throw TestFailure("\(response)") }
                }
            }
            let during = try Usage(server.process.identifier)
            print(
                "200 hanging uploads: \(during.residentKiB - before.residentKiB) KiB more resident, "
                    + "\(during.threads - before.threads) threads, \(during.descriptors - before.descriptors) descriptors;"
                    + " 20 uploads beside them in \(ContinuousClock.now - began)")
            #expect(during.threads - before.threads <= 220)
            #expect(during.descriptors - before.descriptors <= 450)
            // Each upload can still be continued by its own client, or taken over by another client.
            for (number, (connection, location)) in stalled.enumerated() {
                if number.isMultiple(of: 2) {
                    try connection.send(BytePool.repeated(20_000..<100_000))
                    #expect(try connection.readResponse(to: "PUT").status == 201)
                } else if number % 20 == 1 {
                    #expect(try server.exchange(.retrieval(.v8, location)).complete == false)
                }
                connection.close()
            }
            #expect(server.published("slow198") == BytePool.repeated(0..<100_000))
            let after: Usage? = try pollUntil(within: .seconds(60)) {
                let usage = try Usage(server.process.identifier)
                return usage.threads <= before.threads + 4 && usage.descriptors <= before.descriptors + 8 ? usage : nil
            }
            #expect(after != nil, "threads or descriptors were not released")
            #expect(server.unfinished.count == 100)
        }
    }

    /// Sets the soft limit of a running process.
    private func limitDescriptors(_ process: pid_t, to limit: String) throws {
        let command = try ChildProcess("/usr/bin/prlimit", ["--pid", "\(process)", "--nofile=\(limit)"])
        #expect(try command.awaitEnding() == .exited(0))
    }

    @Test("CRE-23 SEC-17: without free descriptors the server refuses requests, reports no wrong offset, and recovers")
    func outOfDescriptors() throws {
        try withServer { server in
            let location = try server.begin(.v8, "/files/file.bin", BytePool.repeated(0..<1000))
            let open = try server.connect()
            #expect(try open.exchange(.retrieval(.v8, location)).offset == 1000)
            let process = server.process.identifier
            // Open descriptors stay open; no further descriptor can be opened.
            try limitDescriptors(process, to: "8:")
            let refused = try open.exchange(.creation(.v8, "PUT", "/files/other.bin", complete: false, .bytes([1, 2])))
            #expect((500..<600).contains(refused.status), "\(refused)")
            #expect(refused.complete != true)
            #expect(refused.location == nil)
            try limitDescriptors(process, to: "1000:")
            #expect(eventually { (try? server.exchange(.retrieval(.v8, location)))?.offset == 1000 })
            let last = try server.exchange(
                .append(.v8, location, at: 1000, complete: true, .bytes(BytePool.repeated(1000..<2000))))
            #expect(last.status == 201)
            #expect(server.published("file.bin") == BytePool.repeated(0..<2000))
            #expect(server.published("other.bin") == nil)
        }
    }
}
