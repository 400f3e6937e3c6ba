import ConformanceKit
import FoundationEssentials
import Glibc
import TestSupport
import Testing

/// If standard error accepts no bytes, log lines are dropped and counted, and the service continues.
@Suite("Blocked outputs", .blocking)
struct BlockedOutputTests {
    private static let requests = 5000

    /// Sends many requests on a few connections, and an upload.
    private func use(_ connect: () throws -> RawConnection) throws {
        for part in 0..<5 {
            let connection = try connect()
            for _ in 0..<Self.requests / 5 {
                #expect(try connection.exchange(.get("/healthz"), within: .seconds(30)).status == 200)
            }
            let put = Request("PUT", "/files/f\(part)", [], .bytes(Payload.bytes(50_000)))
            #expect(try connection.exchange(put, within: .seconds(30)).status == 201)
        }
    }

    @Test(
        "A standard error that is not read stops neither requests nor SIGTERM; dropped lines are counted and reported",
        arguments: [false, true])
    func unread(isFull: Bool) throws {
        let server = try UnreadOutput(isFull: isFull, output: isFull)
        try use(server.connect)
        let location = try #require(try server.exchange(.creation(complete: false, .bytes([1, 2]))).location)
        #expect(try server.exchange(.append(.v8, location, at: 2, complete: true, .bytes([3]))).status == 201)
        let counted = MetricSamples(try server.exchange(.get("/metrics")).text)["onward_log_lines_dropped_total"]
        #expect(counted > 1000)
        // The reader continues to read.
        var dropped = 0
        var answered = 0
        try server.readLines { lines in
            dropped = lines.filter { $0.contains(" log lines were dropped") }
                .compactMap { $0.split(separator: " ").dropFirst(2).first.flatMap { Int($0) } }.reduce(0, +)
            answered = lines.count { $0.contains(" GET /healthz 200 ") }
            return dropped >= Int(counted)
        }
        #expect(answered >= 500 && answered + dropped >= Self.requests)
        // The reader stops again.
        let connection = try server.connect()
        for _ in 0..<3000 { #expect(try connection.exchange(.get("/healthz")).status == 200) }
        server.process.kill(SIGTERM)
        #expect(try server.process.awaitEnding(within: .seconds(30)) == .exited(0))
    }

    @Test(
        "If standard error is closed, or its reader has ended, only log lines are lost",
        arguments: ["2>&-", "2>&- 1>&- 0<&-", "2>&3"])
    func closed(redirection: String) throws {
        let directory = try TemporaryDirectory()
        let port = try FixedPort.next()
        var ends: [Int32] = [0, 0]
        try #require(pipe(&ends) == 0)
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        close(ends[0])
        defer { close(ends[1]) }
        let process = try ChildProcess(
            "/bin/sh",
            [
                "-c", "exec \"$0\" \"$@\" \(redirection) 3>&-", try ExecutableLocation.onward(), "serve", "--root",
                directory.path + "/data", "--listen", "127.0.0.1:\(port)", "--min-free", "0",
            ], descriptors: [ends[1]])
        func connect() throws -> RawConnection { try RawConnection(port: port, authority: "127.0.0.1:\(port)") }
        #expect(eventually { (try? connect().exchange(.get("/readyz")).status) == 200 })
        try use(connect)
        let metrics = MetricSamples(try connect().exchange(.get("/metrics")).text)
        #expect(metrics["onward_log_lines_dropped_total"] > 4000)
        // No file of the store got the number of the closed descriptor, so no file contains log lines.
        for name in try FileManager.default.contentsOfDirectory(atPath: directory.path + "/data") {
            let content = FileManager.default.contents(atPath: directory.path + "/data/" + name) ?? Data()
            #expect(content.firstRange(of: Data("GET /healthz".utf8)) == nil, "\(name)")
        }
        process.kill(SIGTERM)
        #expect(try process.awaitEnding(within: .seconds(30)) == .exited(0))
    }

    @Test("The lines printed at the start do not delay SIGTERM, even if they are not read")
    func stopAfterStart() throws {
        let server = try UnreadOutput(isFull: true, output: true)
        server.process.kill(SIGTERM)
        // The server tries for up to a second to write its last log lines.
        #expect(try server.process.awaitEnding(within: .seconds(30)) == .exited(0))
    }

    @Test("A server that cannot start ends with its status, even if its message is not read")
    func failedStart() throws {
        var ends: [Int32] = [0, 0]
        try #require(pipe(&ends) == 0)
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        defer { for end in ends { close(end) } }
        _ = fcntl(ends[1], F_SETFL, O_NONBLOCK)
        while write(ends[1], [UInt8](repeating: 35, count: 4096), 4096) > 0 {}
        _ = fcntl(ends[1], F_SETFL, 0)
        let process = try ChildProcess(
            "/bin/sh",
            [
                "-c", "exec \"$0\" \"$@\" 2>&3 1>&3 3>&-", try ExecutableLocation.onward(), "serve", "--root",
                "/proc/none",
            ], descriptors: [ends[1]])
        #expect(try process.awaitEnding(within: .seconds(30)) == .exited(74))
    }
}
