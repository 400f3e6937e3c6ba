import ConformanceKit
import FoundationEssentials
import Glibc
import SystemCalls
import TestSupport
import Testing
import TransferServer

/// The test acts as the service manager: it binds sockets, passes them on, and receives messages.
@Suite("Start by a service manager", .blocking)
struct ServiceManagerTests {
    /// Starts `onward serve` as a manager does: with the sockets as the descriptors from 3 on, and with the ID of the
    /// new process in `LISTEN_PID`.
    private func start(
        _ directory: TemporaryDirectory, _ options: [String] = [], sockets: [Int32] = [],
        _ environment: [String: String] = [:]
    ) throws -> ChildProcess {
        let script = "LISTEN_PID=$$ LISTEN_FDS=\(sockets.count) exec \"$0\" \"$@\""
        return try ChildProcess(
            "/bin/sh",
            ["-c", sockets.isEmpty ? "exec \"$0\" \"$@\"" : script, try ExecutableLocation.onward(), "serve"]
                + ["--root", directory.path + "/data", "--min-free", "0"] + options,
            environment: environment, descriptors: sockets)
    }

    private func addresses(_ log: String) -> [String] {
        log.split(separator: "\n").compactMap {
            $0.split(separator: "listening on ").dropFirst().first.map(String.init)
        }
    }

    @Test("A connection made before the start is answered, and the server listens on the passed sockets only")
    func activation() throws {
        let directory = try TemporaryDirectory()
        let tcp = try ListeningSocket(.tcp(host: "127.0.0.1", port: 0))
        let unix = try ListeningSocket(.unix(path: directory.path + "/onward.sock"))
        let sockets = [tcp.release(), unix.release()].map { FileDescriptor(owning: $0) }
        guard case .tcp(_, let port) = tcp.address else { throw TestFailure("no port") }
        let early = try RawConnection(port: port)
        try early.send(.get("/healthz"))
        let manager = try ManagerSocket(directory.path + "/notify")

        let first = try start(
            directory, sockets: sockets.map(\.rawValue),
            ["NOTIFY_SOCKET": manager.address, "LISTEN_FDNAMES": "web:local"])
        #expect(try early.readResponse().status == 200)
        try manager.await("READY", "1")
        _ = try first.awaitErrorOutput { log in addresses(log).count == 2 ? true : nil }
        #expect(addresses(first.errorOutput) == ["127.0.0.1:\(port)", "unix:" + directory.path + "/onward.sock"])
        let local = try RawConnection(unixPath: directory.path + "/onward.sock")
        #expect(try local.exchange(Request("PUT", "/files/f", [], .bytes([1, 2]))).status == 201)
        for number in [3, 4] {
            let text = FileManager.default.contents(atPath: "/proc/\(first.identifier)/fdinfo/\(number)")
            let flags = String(decoding: text ?? Data(), as: UTF8.self).split(separator: "\n").first {
                $0.hasPrefix("flags:")
            }
            let value = flags.flatMap { Int($0.drop { !$0.isNumber }, radix: 8) }
            #expect(value.map { $0 & 0o2000000 } == 0o2000000, "the descriptor must be closed on exec")
        }

        // The manager keeps the sockets open: a client that connects during the restart waits.
        first.kill(SIGTERM)
        #expect(try first.awaitEnding() == .exited(0))
        let between = try RawConnection(port: port)
        try between.send(.get("/files/f"))
        let second = try start(directory, sockets: sockets.map(\.rawValue))
        #expect(try between.readResponse().content == [1, 2])
        withExtendedLifetime((second, sockets)) {}
    }

    @Test("--listen adds addresses to the passed sockets")
    func addition() throws {
        let directory = try TemporaryDirectory()
        let bound = try ListeningSocket(.tcp(host: "127.0.0.1", port: 0))
        let socket = FileDescriptor(owning: bound.release())
        let path = directory.path + "/more.sock"
        let process = try start(directory, ["--listen", "unix:" + path], sockets: [socket.rawValue])
        _ = try process.awaitErrorOutput { log in addresses(log).count == 2 ? true : nil }
        #expect(addresses(process.errorOutput) == ["\(bound.address)", "unix:" + path])
        #expect(try RawConnection(unixPath: path).exchange(.get("/healthz")).status == 200)
    }

    @Test("Sockets for another process are not used")
    func foreign() throws {
        let directory = try TemporaryDirectory()
        let bound = try ListeningSocket(.tcp(host: "127.0.0.1", port: 0))
        let socket = FileDescriptor(owning: bound.release())
        let path = directory.path + "/own.sock"
        let process = try ChildProcess(
            try ExecutableLocation.onward(), ["serve", "--root", directory.path + "/data", "--listen", "unix:" + path],
            environment: ["LISTEN_PID": "1", "LISTEN_FDS": "1"], descriptors: [socket.rawValue])
        _ = try process.awaitErrorOutput { log in addresses(log).isEmpty ? nil : true }
        #expect(try RawConnection(unixPath: path).exchange(.get("/healthz")).status == 200)
        #expect(addresses(process.errorOutput) == ["unix:" + path])
    }

    @Test("A descriptor that is no listening socket ends the start with 69, and a socket on a public address with 64")
    func refusals() throws {
        let directory = try TemporaryDirectory()
        let datagrams = FileDescriptor(owning: socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0))
        let wrong = try start(directory, sockets: [datagrams.rawValue], ["LISTEN_FDNAMES": "web"])
        #expect(try wrong.awaitEnding() == .exited(69))
        #expect(wrong.errorOutput.contains("descriptor 3 (web)"))
        let everybody = FileDescriptor(owning: try ListeningSocket(.tcp(host: "0.0.0.0", port: 0)).release())
        let open = try start(directory, sockets: [everybody.rawValue])
        #expect(try open.awaitEnding() == .exited(64))
        #expect(open.errorOutput.contains("--allow-anonymous"))
        let malformed = try ServerProcess.run(
            ["--root", directory.path + "/data"], environment: ["WATCHDOG_USEC": "soon"])
        #expect(try malformed.awaitEnding() == .exited(64))
    }

    @Test("The manager receives messages about the start, readiness, a reload and the end, in this order")
    func notifications() throws {
        let directory = try TemporaryDirectory()
        let manager = try ManagerSocket("@onward-test-\(getpid())")
        let path = directory.path + "/onward.sock"
        let process = try start(directory, ["--listen", "unix:" + path], ["NOTIFY_SOCKET": manager.address])
        try manager.await("READY", "1")
        // Clients can connect as soon as READY is sent.
        #expect(try RawConnection(unixPath: path).exchange(.get("/readyz")).status == 200)
        let received = manager.messages
        #expect(received.first?["STATUS"]?.hasPrefix("Opening ") == true, "\(received)")
        #expect(received.last?["STATUS"]?.contains("unix:" + path) == true, "\(received)")
        #expect(received.dropLast().allSatisfy { $0["READY"] == nil })

        let before = SystemClock.monotonicNanoseconds() / 1000
        process.kill(SIGHUP)
        let reloading = try manager.await("RELOADING", "1")
        let time = try #require(reloading["MONOTONIC_USEC"].flatMap { Int64($0) })
        #expect(time >= before && time <= SystemClock.monotonicNanoseconds() / 1000)
        #expect(reloading["READY"] == nil)
        try manager.await("READY", "1")

        process.kill(SIGTERM)
        let stopping = try manager.await("STOPPING", "1")
        #expect(
            Int(stopping["EXTEND_TIMEOUT_USEC"] ?? "") == 60_000_000, "the drain time of 30 s, and another 30 s")
        #expect(try process.awaitEnding() == .exited(0))
    }

    @Test("A start that fails does not send READY")
    func failure() throws {
        let directory = try TemporaryDirectory()
        let manager = try ManagerSocket(directory.path + "/notify")
        let process = try start(
            directory, ["--listen", "unix:" + directory.path + "/none/s"], ["NOTIFY_SOCKET": manager.address])
        #expect(try process.awaitEnding() == .exited(69))
        manager.receiveAll()
        #expect(!manager.messages.isEmpty)
        #expect(manager.messages.allSatisfy { $0["READY"] == nil })
    }

    @Test("Watchdog messages are sent continuously; while the disk fails, their status reports the failure")
    func watchdog() throws {
        let directory = try TemporaryDirectory()
        let manager = try ManagerSocket(directory.path + "/notify")
        let process = try start(
            directory, ["--listen", "127.0.0.1:0", "--listen", "unix:" + directory.path + "/onward.sock"],
            ["NOTIFY_SOCKET": manager.address, "WATCHDOG_USEC": "1000000"])
        for _ in 0..<3 { try manager.await("WATCHDOG", "1") }
        #expect(process.errorOutput.split(separator: "\n").allSatisfy { !$0.contains(" GET ") }, "no request is made")
        // This directory has the name of the file that the store writes to test the disk.
        mkdir(directory.path + "/data/uploads/.probe", 0o700)
        let received = try #require(
            try pollUntil(within: .seconds(60)) { () -> [String: String]? in
                let message = try manager.await("WATCHDOG", "1")
                return message["STATUS"]?.contains("bytes-cannot-be-written") == true ? message : nil
            })
        #expect(received["STATUS"]?.hasPrefix("Serving ") == true)
        process.kill(SIGTERM)
        #expect(try process.awaitEnding() == .exited(0))
        manager.receiveAll()
        let end = try #require(manager.messages.lastIndex { $0["STOPPING"] != nil })
        #expect(manager.messages[end...].dropFirst().allSatisfy { $0["WATCHDOG"] == nil })
    }

    @Test("A server with a listener that accepts no connections, or with a closed store, is not alive")
    func stuck() throws {
        func soon(_ milliseconds: Int64) -> Int64 { SystemClock.monotonicNanoseconds() + milliseconds * 1_000_000 }
        let host = try EmbeddedServer(targets: [])
        let directory = try TemporaryDirectory()
        // A listener that accepts two connections and no more.
        let bound = try ListeningSocket(.unix(path: directory.path + "/s"))
        let listener = FileDescriptor(owning: bound.release())
        let unreachable = SocketAddress.unix(path: directory.path + "/none")
        _ = try WorkerThread(name: "two") {
            for _ in 0..<2 { close(accept(listener.rawValue, nil, nil)) }
        }
        let check = LivenessCheck(
            addresses: host.server.addresses + [bound.address, unreachable], store: host.store, until: soon(30_000))
        #expect(check.unreachable == [unreachable])
        #expect(check.health(until: soon(30_000))?.isReady == true)
        #expect(check.health(until: soon(200)) == nil)

        let other = LivenessCheck(addresses: host.server.addresses, store: host.store, until: soon(30_000))
        #expect(other.health(until: soon(30_000))?.isReady == true)
        host.store.close()
        #expect(other.health(until: soon(30_000)) == nil)
    }
}
