import ConformanceKit
import Foundation
import Glibc
import SystemCalls
import TestSupport
import Testing

@testable import HTTPTransport
@testable import ResumableTransfer

/// Replaces the resolver of this process by one that does not answer: libcurl calls the resolver in a separate thread.
private enum SlowResolver {
    /// The suffix of the host names for which the resolver does not answer.
    static let suffix = ".slow.invalid"

    struct State {
        var waiting = 0
        var isReleased = false
    }

    static let state = Monitor(State())

    /// The number of lookups that wait now.
    static var waiting: Int { state.withLock { $0.waiting } }

    static func awaitLookups(_ count: Int) -> Bool {
        state.wait(until: Deadline(in: .seconds(60)).nanoseconds) { $0.waiting >= count ? () : nil } != nil
    }

    /// Ends the waiting lookups; later ones wait again.
    static func release() {
        state.withLock { $0.isReleased = true }
        state.notifyAll()
        _ = state.wait(until: Deadline(in: .seconds(60)).nanoseconds) { $0.waiting == 0 ? () : nil }
        state.withLock { $0.isReleased = false }
    }

    static func wait() {
        state.withLock { $0.waiting += 1 }
        state.notifyAll()
        // The wait has a limit, so that a failing test does not hang forever.
        _ = state.wait(until: Deadline(in: .seconds(600)).nanoseconds) { $0.isReleased ? () : nil }
        state.withLock { $0.waiting -= 1 }
        state.notifyAll()
    }
}

/// Replaces the function of the C library in this process.
@_cdecl("getaddrinfo")
func slowGetaddrinfo(
    _ host: UnsafePointer<CChar>?, _ service: UnsafePointer<CChar>?, _ hints: UnsafePointer<addrinfo>?,
    _ result: UnsafeMutablePointer<UnsafeMutablePointer<addrinfo>?>?
) -> Int32 {
    typealias Function =
        @convention(c) (
            UnsafePointer<CChar>?, UnsafePointer<CChar>?, UnsafePointer<addrinfo>?,
            UnsafeMutablePointer<UnsafeMutablePointer<addrinfo>?>?
        ) -> Int32
    if let host, String(cString: host).hasSuffix(SlowResolver.suffix) {
        SlowResolver.wait()
        return EAI_NONAME
    }
    // RTLD_NEXT is a macro that the importer does not import.
    guard let next = dlsym(UnsafeMutableRawPointer(bitPattern: -1), "getaddrinfo") else { return EAI_SYSTEM }
    return unsafeBitCast(next, to: Function.self)(host, service, hints, result)
}

@Suite("Client: a resolver that does not answer", .blocking, .serialized)
struct SlowResolverTests {
    private let fixture = EngineFixture()

    private func slow(_ connectTimeout: Duration = .seconds(300)) -> TransportRequest {
        var request = fixture.request("GET", "http://host.slow.invalid/a")
        request.settings.connectTimeout = connectTimeout
        return request
    }

    @Test("a canceled transfer ends without waiting, and other transfers continue")
    func canceled() async throws {
        let server = try ScriptedServer { _, reply in try reply.respond(200, [:], "yes") }
        let exchange = fixture.engine.start(slow())
        #expect(SlowResolver.awaitLookups(1))
        exchange.cancel()
        #expect(await exchange.result().failure == .canceled)
        #expect(await fixture.run(fixture.request("GET", server.url + "/")).content == Array("yes".utf8))
        // The lookup is still running: nothing has waited for it.
        #expect(SlowResolver.waiting == 1)
        SlowResolver.release()
    }

    @Test("a transfer that times out ends, and other transfers continue")
    func timedOut() async throws {
        let server = try ScriptedServer { _, reply in try reply.respond(200, [:], "yes") }
        let result = await fixture.run(slow(.milliseconds(300)))
        #expect(result.failure != nil && result.head == nil)
        #expect(await fixture.run(fixture.request("GET", server.url + "/")).content == Array("yes".utf8))
        #expect(SlowResolver.awaitLookups(1))
        SlowResolver.release()
    }

    @Test("an engine that is shut down ends without waiting")
    func shutDown() throws {
        let engine = TransportEngine()
        let exchange = engine.start(slow())
        #expect(SlowResolver.awaitLookups(1))
        engine.shutDown()
        #expect(SlowResolver.waiting == 1)
        withExtendedLifetime(exchange) {}
        SlowResolver.release()
    }

    @Test("a pause of an upload does not wait for the resolver")
    func paused() async throws {
        let client = TransferClient(.init())
        let upload = client.upload(
            TransferRequest("http://host.slow.invalid/a", method: .put), from: DataSource(Data([1, 2, 3])))
        upload.start()
        #expect(SlowResolver.awaitLookups(1))
        _ = await upload.pause()
        await client.shutDown()
        #expect(SlowResolver.waiting == 1)
        SlowResolver.release()
    }
}

@Suite("Commands: a resolver that does not answer", .blocking)
struct SlowResolverCommandTests {
    /// A library whose `getaddrinfo` records the call and sleeps.
    private func library(_ home: CommandHome) throws -> String {
        let source = home.path + "/slow.c"
        let library = home.path + "/slow.so"
        let text = """
            #include <unistd.h>
            int getaddrinfo(const char *a, const char *b, const void *c, void *d)
            {
                (void)!write(2, "searching\\n", 10);
                sleep(50);
                return -2;
            }
            """
        try Data(text.utf8).write(to: URL(filePath: source))
        let compiler = try ChildProcess("/usr/bin/cc", ["-shared", "-fPIC", "-o", library, source])
        #expect(try compiler.awaitEnding() == .exited(0), "\(compiler.errorOutput)")
        return library
    }

    @Test(
        "SIGTERM ends put and get without waiting",
        .enabled(if: access("/usr/bin/cc", X_OK) == 0, "needs a C compiler"),
        arguments: ["put", "get"])
    func stopped(command: String) throws {
        let home = try CommandHome()
        let url = "http://host.slow.invalid/x"
        let words = command == "put" ? ["put", try home.file([1, 2, 3]), url] : ["get", url, "-o", home.path + "/x"]
        let run = try home.start(words, environment: ["LD_PRELOAD": try library(home)])
        try run.process.awaitErrorOutput(containing: "searching")
        run.process.kill(SIGTERM)
        // The lookup takes longer than this limit.
        #expect(try run.process.awaitEnding(within: .seconds(30)) == .exited(75))
    }
}
