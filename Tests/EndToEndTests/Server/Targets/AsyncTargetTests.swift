import ConformanceKit
import Foundation
import HTTPSemantics
import ResumableTransfer
import SystemCalls
import TestSupport
import Testing
import TransferServer
import UploadStorage

/// Handlers whose methods are asynchronous.
@Suite("Asynchronous targets", .blocking)
struct AsyncTargetTests {
    /// Counts bytes for all uploads.
    private actor Tally {
        private(set) var bytes = 0
        private var waiting: [CheckedContinuation<Void, Never>] = []
        private var arrived = 0

        func add(_ count: Int) { bytes += count }

        /// Returns when this method has been called `count` times.
        func meet(_ count: Int) async {
            arrived += 1
            guard arrived < count else {
                for continuation in waiting { continuation.resume() }
                waiting = []
                return
            }
            await withCheckedContinuation { waiting.append($0) }
        }
    }

    private struct Awaiting: TargetHandler {
        let tally = Tally()

        func methods(of target: Target) -> [HTTPSemantics.Method] { [.get, .post] }
        func accept(_ proposal: UploadProposal) -> Acceptance { .accept }

        func complete(_ upload: ReceivedUpload) async throws -> HTTPSemantics.Response {
            if upload.target.segments.last == "meet" { await tally.meet(100) }
            try await Task.sleep(for: .milliseconds(1))
            var bytes = [UInt8](repeating: 0, count: Int(upload.length))
            let count = try bytes.withUnsafeMutableBytes { try upload.read(into: $0, at: 0) }
            await tally.add(count)
            return HTTPSemantics.Response(status: 200, content: bytes)
        }

        func respond(to request: TargetRequest) async -> HTTPSemantics.Response {
            HTTPSemantics.Response(status: 200, content: Array("\(await tally.bytes)".utf8))
        }
    }

    /// A handler that is an actor, and publishes.
    private actor Publishing: TargetHandler {
        nonisolated func methods(of target: Target) -> [HTTPSemantics.Method] { [.get, .post] }
        nonisolated func accept(_ proposal: UploadProposal) -> Acceptance { .accept }
        private var names: [String] = []

        func complete(_ upload: ReceivedUpload) async throws -> HTTPSemantics.Response {
            guard let name = PublishedName(segments: ["inbox"] + upload.target.segments) else {
                throw RecordingTarget.Failure()
            }
            let response = try await upload.publish(
                Publication(name: name) { _, _ in HTTPSemantics.Response(status: 201) })
            names.append(name.path)
            return response
        }

        func respond(to request: TargetRequest) -> HTTPSemantics.Response {
            HTTPSemantics.Response(status: 200, content: Array(names.joined(separator: " ").utf8))
        }
    }

    /// Waits for ever, except in a repeated completion; it can ignore the cancellation of its task.
    private struct Endless: TargetHandler {
        let isCompletionRepeatable: Bool
        let ignoresCancellation: Bool
        let calls = Monitor(0)

        func methods(of target: Target) -> [HTTPSemantics.Method] { [.get, .post] }
        func accept(_ proposal: UploadProposal) -> Acceptance { .accept }

        func complete(_ upload: ReceivedUpload) async throws -> HTTPSemantics.Response {
            let call = calls.withLock {
                $0 += 1; return $0
            }
            calls.notifyAll()
            if call > 1 { return HTTPSemantics.Response(status: 201) }
            try await wait()
            return HTTPSemantics.Response(status: 200)
        }

        func respond(to request: TargetRequest) async -> HTTPSemantics.Response {
            calls.withLock { $0 += 1 }
            calls.notifyAll()
            try? await wait()
            return HTTPSemantics.Response(status: 200)
        }

        private func wait() async throws {
            if ignoresCancellation { await withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in } }
            try await Task.sleep(for: .seconds(3600))
        }

        func awaitCall() throws {
            let called: Bool? = calls.wait(until: Deadline(in: .seconds(60)).nanoseconds) { $0 > 0 ? true : nil }
            if called == nil { throw TestFailure("the handler was not called") }
        }
    }

    @Test("A handler awaits an actor, a sleep and the bytes of its upload")
    func awaiting() throws {
        let host = try EmbeddedServer(targets: [("a", Awaiting())])
        let location = try host.begin(.v8, "POST", "/a/x", [1, 2])
        let response = try host.exchange(.append(.v8, location, at: 2, complete: true, .bytes([3])))
        #expect(response.status == 200 && response.content == [1, 2, 3])
        #expect(try host.exchange(.get("/a/x")).text == "3")
    }

    @Test("A hundred handlers wait for each other")
    func meeting() throws {
        let host = try EmbeddedServer(targets: [("a", Awaiting())])
        let connections = try (0..<100).map { _ in try host.connect() }
        for connection in connections { try connection.send(Request("POST", "/a/meet", [], .bytes([1]))) }
        for connection in connections { #expect(try connection.readResponse().content == [1]) }
        #expect(try host.exchange(.get("/a/x")).text == "100")
    }

    @Test("An actor can be a handler, and can publish files")
    func actorPublishing() throws {
        let host = try EmbeddedServer(targets: [("p", Publishing())])
        let location = try host.begin(.v8, "POST", "/p/a", [1, 2])
        for _ in 1...2 {
            let response = try host.exchange(.append(.v8, location, at: 2, complete: true, .bytes([])))
            #expect(response.status == 201)
        }
        #expect(try host.exchange(Request("POST", "/p/b", [], .bytes([3]))).status == 201)
        #expect(try host.exchange(.get("/files/inbox/a")).content == [1, 2])
        #expect(try host.exchange(.get("/p/x")).text == "inbox/a inbox/b")
    }

    @Test(
        "A stop cancels a handler after the drain timeout; the upload counts as interrupted",
        arguments: [true, false], [true, false])
    func stopping(isRepeatable: Bool, ignoresCancellation: Bool) throws {
        let handler = Endless(isCompletionRepeatable: isRepeatable, ignoresCancellation: ignoresCancellation)
        let host = try EmbeddedServer(
            drainTimeout: .milliseconds(100), processingWait: .milliseconds(200), targets: [("e", handler)])
        let location = try host.begin(.v8, "POST", "/e/x", [1, 2])
        let completing = try host.connect()
        try completing.send(.append(.v8, location, at: 2, complete: true, .bytes([3])))
        try handler.awaitCall()
        let begun = ContinuousClock.now
        host.server.stopBlocking()
        #expect(ContinuousClock.now - begun < .seconds(30))
        let next = Server(
            configuration: ServerConfiguration(listeners: [.tcp(host: "127.0.0.1", port: host.port)], logLevel: .error),
            store: host.store, handlers: [("e", handler)])
        try next.startBlocking()
        defer { next.stopBlocking() }
        let repeated = try host.exchange(.append(.v8, location, at: 3, complete: true, .bytes([])))
        #expect(repeated.status == (isRepeatable ? 201 : 500))
        #expect(repeated.complete == true)
        #expect(handler.calls.withLock { $0 } == (isRepeatable ? 2 : 1))
    }

    @Test("A stop does not wait for respond longer than for complete", arguments: [true, false])
    func stoppingResponse(ignoresCancellation: Bool) throws {
        let handler = Endless(isCompletionRepeatable: false, ignoresCancellation: ignoresCancellation)
        let host = try EmbeddedServer(
            drainTimeout: .milliseconds(100), processingWait: .milliseconds(200), targets: [("e", handler)])
        let connection = try host.connect()
        try connection.send(.get("/e/x"))
        try handler.awaitCall()
        let begun = ContinuousClock.now
        host.server.stopBlocking()
        #expect(ContinuousClock.now - begun < .seconds(30))
    }

    /// Decodes JSON.
    private struct Decoding: TargetHandler {
        func methods(of target: Target) -> [HTTPSemantics.Method] { [.post] }
        func accept(_ proposal: UploadProposal) -> Acceptance { .accept }
        func respond(to request: TargetRequest) -> HTTPSemantics.Response { HTTPSemantics.Response(status: 404) }

        func complete(_ upload: ReceivedUpload) async throws -> HTTPSemantics.Response {
            try .json(try await upload.decode([Int].self))
        }
    }

    @Test(
        "JSON that is nested deeply does not exhaust the stack of a connection's thread", arguments: [100, 500, 5000])
    func nesting(depth: Int) throws {
        let host = try EmbeddedServer(targets: [("d", Decoding())])
        let content = String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        let response = try host.exchange(Request("POST", "/d/x", [], .bytes(Array(content.utf8))))
        #expect(response.status == 400 && response.problem?.code == "invalid-json")
        #expect(try host.exchange(Request("POST", "/d/x", [], .bytes(Array("[1]".utf8)))).text == "[1]")
    }

    @Test("If a client disconnects, the handler is not canceled, and the response is stored for a repeated request")
    func disconnected() throws {
        let handler = Awaiting()
        let host = try EmbeddedServer(targets: [("a", handler)])
        let location = try host.begin(.v8, "POST", "/a/meet", [1])
        let first = try host.connect()
        try first.send(.append(.v8, location, at: 1, complete: true, .bytes([])))
        let others = try (0..<98).map { _ in try host.connect() }
        for connection in others { try connection.send(Request("POST", "/a/meet", [], .bytes([1]))) }
        #expect(first.staysSilent(for: .milliseconds(100)))
        first.reset()
        let last = try host.exchange(Request("POST", "/a/meet", [], .bytes([1])))
        #expect(last.status == 200)
        let again = try host.exchange(.append(.v8, location, at: 1, complete: true, .bytes([])))
        #expect(again.status == 200 && again.content == [1])
    }

    /// Cannot process an upload in the first call.
    private struct Unavailable: TargetHandler {
        var isCompletionRepeatable = true
        var retryAfter = Duration.milliseconds(4001)
        let calls = Monitor(0)

        func methods(of target: Target) -> [HTTPSemantics.Method] { [.post] }
        func accept(_ proposal: UploadProposal) -> Acceptance { .accept }
        func respond(to request: TargetRequest) -> HTTPSemantics.Response { HTTPSemantics.Response(status: 404) }

        func complete(_ upload: ReceivedUpload) async throws -> HTTPSemantics.Response {
            let call = calls.withLock {
                $0 += 1; return $0
            }
            if call == 1 { throw TargetUnavailable("busy", retryAfter: retryAfter) }
            return .text("\(upload.length) bytes in call \(call)")
        }
    }

    @Test("The next completing request calls a handler again that was unavailable", arguments: Interop.allCases)
    func unavailable(version: Interop) throws {
        let handler = Unavailable()
        let host = try EmbeddedServer(targets: [("u", handler)])
        let location = try host.begin(version, "POST", "/u/x", [1, 2])
        let refused = try host.exchange(.append(version, location, at: 2, complete: true, .bytes([3])))
        #expect(refused.status == 503 && refused.problem?.code == "target-unavailable")
        #expect(refused.value("Retry-After") == "5")
        #expect(refused.complete != true && refused.offset == 3)
        let final = try host.exchange(.append(version, location, at: 3, complete: true, .bytes([])))
        #expect(final.status == 200 && final.text == "3 bytes in call 2")
        #expect(handler.calls.withLock { $0 } == 2)
    }

    @Test("A completing retrieval gets 423 while the handler is unavailable", arguments: [Interop.v5, .v6])
    func unavailableForRetrieval(version: Interop) throws {
        let handler = Unavailable()
        let host = try EmbeddedServer(targets: [("u", handler)])
        let location = try host.begin(version, "POST", "/u/x", [1, 2], [("Upload-Length", "3")])
        let refused = try host.exchange(.append(version, location, at: 2, complete: false, .bytes([3])))
        #expect(refused.status == 503)
        handler.calls.withLock { $0 = 0 }
        let locked = try host.exchange(.retrieval(version, location))
        #expect(locked.status == 423 && locked.value("Retry-After") == "5")
        let final = try host.exchange(.retrieval(version, location))
        #expect(final.status == 204 && final.offset == 3 && final.complete == true)
    }

    @Test("An upload whose URL was not announced is removed if its handler is unavailable", arguments: [true, false])
    func unavailableUnannounced(isAnnounced: Bool) throws {
        let handler = Unavailable()
        let host = try EmbeddedServer(targets: [("u", handler)])
        var creation = Request.creation(.v6, "POST", "/u/x", complete: true, .bytes([1, 2]))
        if !isAnnounced { creation.fields.append(("Onward-Interim", "off")) }
        let refused = try host.exchange(creation)
        #expect(refused.status == 503 && refused.value("Retry-After") == "5")
        #expect(refused.offset == (isAnnounced ? 2 : nil))
        let stored = try FileManager.default.contentsOfDirectory(atPath: host.directory.path + "/data/uploads")
        #expect(stored.count == (isAnnounced ? 1 : 0))
        #expect(try host.exchange(creation).text == "2 bytes in call 2")
    }

    @Test("The bytes of a plain upload to a handler that is unavailable are removed")
    func unavailableForPlainUpload() throws {
        let host = try EmbeddedServer(targets: [("u", Unavailable())])
        let request = Request("POST", "/u/x", [], .bytes([1, 2]))
        let refused = try host.exchange(request)
        #expect(refused.status == 503 && refused.value("Retry-After") == "5")
        #expect(try FileManager.default.contentsOfDirectory(atPath: host.directory.path + "/data/uploads").isEmpty)
        #expect(try host.exchange(request).text == "2 bytes in call 2")
    }

    @Test("The client repeats a request that the handler could not process")
    func unavailableForClient() async throws {
        let host = try EmbeddedServer(targets: [("u", Unavailable(retryAfter: .zero))])
        let fixture = try UploadFixture()
        let source = try fixture.file([1, 2, 3])
        let result = try await fixture.client.upload(
            TransferRequest("http://127.0.0.1:\(host.port)/u/x", method: .post), from: source
        ).value()
        #expect(String(decoding: result.content, as: UTF8.self) == "3 bytes in call 2")
    }

    @Test("An upload whose completion must not be repeated fails if its handler is unavailable")
    func unavailableOnce() throws {
        let handler = Unavailable(isCompletionRepeatable: false)
        let host = try EmbeddedServer(targets: [("u", handler)])
        let location = try host.begin(.v8, "POST", "/u/x", [1, 2])
        for _ in 1...2 {
            let final = try host.exchange(.append(.v8, location, at: 2, complete: true, .bytes([])))
            #expect(final.status == 500 && final.problem?.code == "target-failed" && final.complete == true)
        }
        #expect(handler.calls.withLock { $0 } == 1)
    }
}
