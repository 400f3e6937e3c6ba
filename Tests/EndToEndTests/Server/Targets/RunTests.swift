import ConformanceKit
import Glibc
import SystemCalls
import TestSupport
import Testing
import TransferServer
import UploadStorage

/// `Server.run`, `start` and `stop` in asynchronous programs.
@Suite("Running a server", .serialized)
struct RunTests {
    /// By default this signal has no effect, so a test that fails does not end the test run.
    private static let signal = Server.Signal(rawValue: SIGWINCH)

    private func withServer(_ body: (Server) async throws -> Void) async throws {
        let directory = try TemporaryDirectory()
        let store = try UploadStore.open(root: directory.path + "/data", configuration: StoreConfiguration(minFree: 0))
        defer { store.close() }
        let server = Server(
            configuration: ServerConfiguration(listeners: [.unix(path: directory.path + "/socket")], logLevel: .error),
            store: store, handlers: [("files", FilesHandler(store: store))])
        try await body(server)
    }

    private func awaitStart(_ server: Server) async throws {
        for _ in 0..<6000 {
            if !server.addresses.isEmpty { return }
            try await Task.sleep(for: .milliseconds(10))
        }
        throw TestFailure("the server did not start")
    }

    @Test("A signal ends run", .timeLimit(.minutes(2)))
    func signal() async throws {
        try await withServer { server in
            async let running: Void = server.run(stoppingOn: [Self.signal])
            try await awaitStart(server)
            kill(getpid(), SIGWINCH)
            try await running
            #expect(throws: Server.StartError.self) { try server.startBlocking() }
        }
    }

    @Test("Several servers of a process end with the same signal", .timeLimit(.minutes(2)))
    func several() async throws {
        try await withServer { first in
            try await withServer { second in
                async let firstRun: Void = first.run(stoppingOn: [Self.signal])
                async let secondRun: Void = second.run(stoppingOn: [Self.signal])
                try await awaitStart(first)
                try await awaitStart(second)
                kill(getpid(), SIGWINCH)
                try await firstRun
                try await secondRun
            }
        }
    }

    @Test("A canceled task stops its server and returns", .timeLimit(.minutes(2)))
    func canceled() async throws {
        try await withServer { server in
            let running = Task { try await server.run(stoppingOn: []) }
            try await awaitStart(server)
            running.cancel()
            try await running.value
        }
        try await withServer { server in
            let running = Task { try await server.run(stoppingOn: []) }
            running.cancel()
            try await running.value
        }
    }

    @Test("The signal has its previous action after run", .timeLimit(.minutes(2)))
    func restored() async throws {
        var before = sigaction()
        sigaction(SIGWINCH, nil, &before)
        try await withServer { server in
            let running = Task { try await server.run(stoppingOn: [Self.signal]) }
            try await awaitStart(server)
            var during = sigaction()
            sigaction(SIGWINCH, nil, &during)
            #expect(handler(during) != handler(before))
            running.cancel()
            try await running.value
        }
        var after = sigaction()
        sigaction(SIGWINCH, nil, &after)
        #expect(handler(after) == handler(before))
    }

    private func handler(_ action: sigaction) -> Int {
        unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self)
    }

    @Test("run throws the reason why a server cannot start", .timeLimit(.minutes(2)))
    func failing() async throws {
        try await withServer { server in
            try await server.start()
            await #expect(throws: Server.StartError.self) { try await server.run(stoppingOn: []) }
            await server.stop()
        }
    }

    @Test("Many servers start and stop at the same time without blocking the cooperative pool", .timeLimit(.minutes(5)))
    func many() async throws {
        try await withThrowingTaskGroup { group in
            for _ in 0..<20 {
                group.addTask {
                    try await withServer { server in
                        try await server.start()
                        await server.stop()
                    }
                }
            }
            try await group.waitForAll()
        }
    }
}
