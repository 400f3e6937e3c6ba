import ConformanceKit
import FoundationEssentials
import SystemCalls
import TestSupport
import Testing

/// Compares counts, not times, with fixed limits: counts are the same on a fast and on a busy machine. The numbers
/// belong to a debug build, in which allocations are several times as many as in a release build.
@Suite(
    "What a request costs", .serialized, .blocking,
    .enabled(if: SystemCallTrace.isPossible, "needs strace, and the right to trace"),
    .enabled(if: PreloadedLibrary.compiler != nil, "needs a C compiler"),
    .enabled(if: RequestCost.isComparable, "a sanitizer and another executable have other counts"))
struct RequestCostTests {
    /// Measures requests on connections that stay open: each sends one request, then all responses are read.
    /// - Parameter units: the number of units in a request, for the cost of each.
    private func measure(
        _ options: [String] = [], requests count: Int, units: Int = 1, connections: Int = 1,
        _ prepare: (ServerProcess) throws -> (_ number: Int) -> Request
    ) throws -> RequestCost {
        let counter = try AllocationCounter()
        let server = try ServerProcess(options, environment: counter.environment)
        let request = try prepare(server)
        let open = try (0..<connections).map { _ in try server.connect() }
        var number = 0
        return try RequestCost(of: server, allocations: counter, units: count * units) {
            for _ in 0..<count / connections {
                for connection in open {
                    try connection.send(request(number))
                    number += 1
                }
                for connection in open {
                    let response = try connection.readResponse()
                    try #require((200..<300).contains(response.status), "\(response)")
                }
            }
        }
    }

    /// The log is written in batches, whose number depends on time.
    private static let logCalls = ["clock_nanosleep": 1.0, "write": 1]

    private static func creation(of size: Int) -> (ServerProcess) -> (Int) -> Request {
        let content = Payload.bytes(size)
        return { _ in { .creation(.v8, "PUT", "/files/\($0 + 100_000)", complete: true, .bytes(content)) } }
    }

    /// The calls for an upload of 4 KiB, without synchronizations.
    private static let creationCalls = [
        "close": 1, "fstatfs": 1, "newfstatat": 3, "openat": 3, "recvfrom": 1, "renameat2": 1,
        "sched_yield": 2, "sendto": 2, "utimensat": 1,
    ]

    @Test("an upload of 4 KiB by one client, durable")
    func durableUpload() throws {
        let cost = try measure(requests: 32, Self.creation(of: 4096))
        CostLimit(
            exactly: Self.creationCalls.merging(["fsync": 2, "fdatasync": 1, "newfstatat": 4]) { $1 },
            atMost: ["fcntl": 7, "futex": 6, "poll": 3, "pread64": 1, "pwrite64": 16].merging(Self.logCalls) { $1 },
            calls: 50, synchronizations: 3.2, switches: 20, allocations: 2200
        ).check(cost, "upload of 4 KiB, durable")
    }

    @Test("with events an upload of 4 KiB has the same synchronizations as without")
    func uploadWithEvents() throws {
        // Nothing listens on this port, so the events stay in the outbox.
        let options = ["--events", "http://127.0.0.1:\(try FixedPort.next())/events"]
        let costs = try [[], options].map { try measure($0, requests: 32, Self.creation(of: 4096)) }
        for call in RequestCost.synchronizations {
            let counts = costs.map { ($0.calls[call] ?? 0).rounded() }
            #expect(counts[0] == counts[1], "\(call): \(costs.map { $0.calls[call] ?? 0 })")
        }
    }

    @Test("an upload of 4 KiB by one client, relaxed")
    func relaxedUpload() throws {
        let cost = try measure(["--durability", "relaxed"], requests: 32, Self.creation(of: 4096))
        CostLimit(
            exactly: Self.creationCalls,
            atMost: ["fcntl": 7, "futex": 6, "poll": 3, "pread64": 1, "pwrite64": 16].merging(Self.logCalls) { $1 },
            calls: 46, synchronizations: 0.2, switches: 8, allocations: 2120
        ).check(cost, "upload of 4 KiB, relaxed")
    }

    @Test("uploads of 4 KiB by 64 clients, durable")
    func concurrentUploads() throws {
        // Fractions come from work in the background. If syncfs is slow, because there is much to write at the moment, each
        // upload makes an fsync of its own.
        let cost = try measure(requests: 128, connections: 64, Self.creation(of: 4096))
        CostLimit(
            atMost: Self.creationCalls.mapValues { Double($0) + 0.2 }.merging([
                "fcntl": 10, "fdatasync": 1.2, "fsync": 3, "futex": 25, "newfstatat": 8, "poll": 3, "pread64": 4,
                "pwrite64": 14, "syncfs": 0.5,
            ]) { $1 }.merging(Self.logCalls) { $1 },
            calls: 90, synchronizations: 4, switches: 35, allocations: 2700
        ).check(cost, "upload of 4 KiB, durable, 64 clients")
    }

    @Test("HEAD of an upload")
    func retrieval() throws {
        let cost = try measure(requests: 32) { server in
            let location = try server.begin()
            return { _ in .retrieval(.v8, location) }
        }
        CostLimit(
            exactly: [
                "close": 2, "fcntl": 4, "newfstatat": 1, "openat": 2, "recvfrom": 1, "sendto": 1, "unlinkat": 1,
            ],
            atMost: ["futex": 1, "poll": 2].merging(Self.logCalls) { $1 },
            calls: 22, synchronizations: 0, switches: 2, allocations: 2700
        ).check(cost, "HEAD")
    }

    @Test("a request without content through a route")
    func forwardedRequest() throws {
        let origin = try ScriptedServer.origin { _, connection in try connection.respond() }
        let cost = try measure(["--route", "/app=\(origin.url),access=open"], requests: 32) { _ in
            { _ in .get("/app/x") }
        }
        CostLimit(
            // recvfrom is called for the client, for the origin, and to check whether the connection to the origin is
            // still open.
            exactly: ["recvfrom": 3, "sendmsg": 1, "sendto": 1],
            atMost: ["futex": 1, "poll": 3].merging(Self.logCalls) { $1 },
            calls: 11, synchronizations: 0, switches: 4, allocations: 1050
        ).check(cost, "request through a route")
        withExtendedLifetime(origin) {}
    }

    /// - Parameter isUploaded: whether an upload created the file, so that the catalog has a record of it.
    private func download(of size: Int, isUploaded: Bool = true) throws -> RequestCost {
        try measure(requests: 32) { server in
            if isUploaded {
                let upload = Request("PUT", "/files/x", [], .bytes(Payload.bytes(size)))
                try #require(try server.exchange(upload).status == 201)
            } else {
                let content = Data(Payload.bytes(size))
                try #require(FileManager.default.createFile(atPath: server.path(of: "x"), contents: content))
            }
            return { _ in Request("GET", "/files/x") }
        }
    }

    @Test("a download of 1 KiB, which is sent in one call")
    func smallDownload() throws {
        CostLimit(
            exactly: [
                "close": 1, "newfstatat": 1, "openat": 1, "pread64": 1, "recvfrom": 1, "sendmsg": 1,
            ],
            atMost: ["futex": 1, "poll": 2].merging(Self.logCalls) { $1 },
            calls: 11, synchronizations: 0, switches: 2, allocations: 810
        ).check(try download(of: 1 << 10), "download of 1 KiB")
    }

    @Test(
        "a download of 100 KiB, which the kernel copies, of a file that an upload or another program has created",
        arguments: [true, false])
    func mediumDownload(_ isUploaded: Bool) throws {
        CostLimit(
            exactly: [
                "close": 2, "fcntl": 1, "getsockopt": 1, "newfstatat": 1, "openat": 1, "recvfrom": 1, "sendto": 1,
            ],
            atMost: ["futex": 1, "poll": 2, "sendfile": 2].merging(Self.logCalls) { $1 },
            calls: 16, synchronizations: 0, switches: 3, allocations: 825
        ).check(try download(of: 100 << 10, isUploaded: isUploaded), "download of 100 KiB")
    }

    /// Whether the names of a large directory in the directory for temporary files are kept.
    private static var observesDirectories: Bool {
        let temporary = try? TemporaryDirectory()
        return (try? temporary.map { try FileDescriptor.open($0.path, [.readOnly]).canBeObserved }) == true
    }

    @Test(
        "a page of ten names of a directory with thousands of files, which is not read again",
        .enabled(if: observesDirectories, "needs ext4, XFS, Btrfs or tmpfs"))
    func page() throws {
        let cost = try measure(requests: 32) { server in
            try FileDescriptor.makeDirectory(server.path(of: "many"))
            let directory = try FileDescriptor.open(server.path(of: "many"), [.readOnly, .directory])
            for number in 0..<4000 { _ = try directory.open(at: "file \(number)", [.writeOnly, .create]) }
            return { _ in Request("GET", "/files/many/?limit=10", [("Accept", "application/json")]) }
        }
        CostLimit(
            exactly: ["fstatfs": 1, "getsockopt": 1, "newfstatat": 12, "openat": 2, "read": 1, "recvfrom": 1],
            atMost: ["close": 3, "fcntl": 2, "futex": 1, "poll": 3, "sendto": 3].merging(Self.logCalls) { $1 },
            calls: 30, synchronizations: 0, switches: 2, allocations: 1550
        ).check(cost, "page of ten names")
    }

    @Test("an uploaded MiB", arguments: ["acknowledged", "relaxed"])
    func largeUpload(_ durability: String) throws {
        let options = ["--durability", durability]
        let cost = try measure(options, requests: 1, units: 16, Self.creation(of: 16 << 20))
        // The number of acknowledgments, and so of writes into the catalog, depends on the time that the upload takes.
        CostLimit(
            atMost: [
                "fcntl": 3, "fdatasync": 1, "fsync": 0.5, "futex": 10, "newfstatat": 1, "poll": 8, "pwrite64": 12,
                "recvfrom": 8, "sendto": 1, "sync_file_range": 1,
            ],
            calls: 45, synchronizations: durability == "relaxed" ? 0 : 1, switches: 20, allocations: 200
        ).check(cost, "uploaded MiB, \(durability)")
    }
}
