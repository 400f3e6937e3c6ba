import ConformanceKit
import FoundationEssentials
import HTTPSemantics
import ResumableUpload
import SystemCalls
import Testing
import TransferServer
import UploadStorage

/// Starting and stopping a server in a process with other tasks.
@Suite("Embedding", .blocking)
struct EmbeddingTests {
    /// Publishes uploads under a name that the handler chooses.
    private struct Publisher: TargetHandler {
        func methods(of target: Target) -> [HTTPSemantics.Method] { [.post] }
        func accept(_ proposal: UploadProposal) -> Acceptance { .accept }

        func complete(_ upload: ReceivedUpload) throws -> HTTPSemantics.Response {
            guard let name = PublishedName(segments: ["inbox", "\(upload.length).bin"]) else {
                throw RecordingTarget.Failure()
            }
            return try upload.publish(
                Publication(name: name) { created, name in
                    HTTPSemantics.Response(status: created ? 201 : 200, content: Array(name.path.utf8))
                })
        }

        func respond(to request: TargetRequest) -> HTTPSemantics.Response { HTTPSemantics.Response(status: 404) }
    }

    /// Publishes under the name of the target, which may be a directory.
    private struct NamedPublisher: TargetHandler {
        /// The behavior of the handler after an error or a publication.
        enum Behavior: CaseIterable { case throwsError, answers, answersAnyway, publishesTwice, failsAfterwards }

        let behavior: Behavior

        func methods(of target: Target) -> [HTTPSemantics.Method] { [.post] }
        func accept(_ proposal: UploadProposal) -> Acceptance { .accept }
        func respond(to request: TargetRequest) -> HTTPSemantics.Response { HTTPSemantics.Response(status: 404) }

        func complete(_ upload: ReceivedUpload) throws -> HTTPSemantics.Response {
            guard let name = PublishedName(segments: upload.target.segments) else { throw RecordingTarget.Failure() }
            do {
                let response = try upload.publish(
                    Publication(name: name) { _, _ in HTTPSemantics.Response(status: 201) })
                if behavior == .publishesTwice {
                    _ = try? upload.publish(Publication(name: name) { _, _ in HTTPSemantics.Response(status: 200) })
                }
                if behavior == .failsAfterwards { throw RecordingTarget.Failure() }
                return behavior == .answersAnyway ? HTTPSemantics.Response(status: 200) : response
            } catch {
                if behavior == .throwsError || behavior == .failsAfterwards { throw error }
                return HTTPSemantics.Response(status: 422)
            }
        }
    }

    @Test("A handler can respond to a failed publication, but cannot change the response to a successful one")
    func refusedPublishing() throws {
        for behavior in NamedPublisher.Behavior.allCases {
            let host = try EmbeddedServer(targets: [("publish", NamedPublisher(behavior: behavior))])
            func publish(_ path: String) throws -> [Int] {
                let location = try host.begin(.v8, "POST", path, [1])
                return try (1...2).map { _ in
                    try host.exchange(.append(.v8, location, at: 1, complete: true, .bytes([]))).status
                }
            }
            #expect(try publish("/publish/a/b") == [201, 201], "\(behavior)")
            let status = behavior == .throwsError || behavior == .failsAfterwards ? 409 : 422
            #expect(try publish("/publish/a") == [status, status], "\(behavior)")
            #expect(try host.exchange(.get("/files/a/b")).content == [1], "\(behavior)")
        }
    }

    @Test("A target of an embedding program can publish the bytes of an upload as a file in one step")
    func publishing() throws {
        let host = try EmbeddedServer(targets: [("publish", Publisher())])
        let location = try host.begin(.v8, "POST", "/publish/x", [1, 2, 3])
        let response = try host.exchange(.append(.v8, location, at: 3, complete: true, .bytes([4, 5])))
        #expect(response.status == 201)
        #expect(response.text == "inbox/5.bin")
        #expect(try host.exchange(.get("/files/inbox/5.bin")).content == [1, 2, 3, 4, 5])
    }

    @Test("Requests go to the handler with the longest matching prefix; other paths get 404")
    func routing() throws {
        let outer = RecordingTarget()
        let inner = RecordingTarget()
        let host = try EmbeddedServer(targets: [("media", outer), ("media/incoming", inner)])
        #expect(try host.exchange(.get("/media/a?q=1")).text == "GET /media/a q=1\n")
        #expect(try host.exchange(Request("POST", "/media/incoming/x", [], .bytes([1]))).status == 203)
        #expect(try host.exchange(Request("POST", "/media/incomingx", [], .bytes([2]))).status == 203)
        #expect(try host.exchange(Request("POST", "/media/other/x", [], .bytes([3]))).status == 203)
        #expect(inner.calls.map(\.content) == [[1]])
        #expect(outer.calls.map(\.content) == [[2], [3]])
        #expect(try host.exchange(Request("POST", "/mediax", [], .bytes([4]))).status == 404)
        #expect(try host.exchange(.get("/")).status == 404)
    }

    @Test("CRE-01: with isAnnouncedWithoutVersion uploads without a version are announced")
    func announcing() throws {
        let host = try EmbeddedServer(isAnnouncedWithoutVersion: true, targets: [("inbox", RecordingTarget())])
        let response = try host.exchange(.creation(nil, "POST", "/inbox/x", complete: true, .bytes([1])))
        let announcement = try #require(response.interim.first)
        #expect(announcement.location?.hasPrefix("/uploads/") == true)
        #expect(!announcement.fields.contains("Upload-Draft-Interop-Version"))
    }

    @Test("A server starts once, reports why it cannot start, and releases its address when it stops")
    func starting() throws {
        let host = try EmbeddedServer(targets: [])
        #expect(throws: Server.StartError.self) { try host.server.startBlocking() }
        let busy = Server(
            configuration: ServerConfiguration(listeners: [.tcp(host: "127.0.0.1", port: host.port)], logLevel: .error),
            store: host.store, handlers: [])
        do {
            try busy.startBlocking()
            Issue.record("two servers listen on one address")
        } catch {
            guard case .cannotListen(let address, let reason) = error else {
                Issue.record(error)
                return
            }
            #expect(address == .tcp(host: "127.0.0.1", port: host.port))
            #expect(reason == .addressInUse)
        }
        let open = Server(
            configuration: ServerConfiguration(listeners: [.tcp(host: "0.0.0.0", port: 0)], logLevel: .error),
            store: host.store, handlers: [])
        do {
            try open.startBlocking()
            Issue.record("a server without tokens listens on a public address")
        } catch {
            guard case .anonymousBeyondLoopback = error else {
                Issue.record(error)
                return
            }
        }
        host.server.stopBlocking()
        #expect((try? host.connect()) == nil)
        let next = Server(
            configuration: ServerConfiguration(listeners: [.tcp(host: "127.0.0.1", port: host.port)], logLevel: .error),
            store: host.store, handlers: [("files", FilesHandler(store: host.store))])
        try next.startBlocking()
        #expect(try host.exchange(Request("PUT", "/files/f.bin", [], .bytes([1]))).status == 201)
        next.stopBlocking()
        next.stopBlocking()
    }

    @Test("Two servers in one process, each with its store, are independent; a directory has one store at a time")
    func two() throws {
        let first = try EmbeddedServer(targets: [])
        let second = try EmbeddedServer(targets: [])
        #expect(try first.exchange(Request("PUT", "/files/f.bin", [], .bytes([1]))).status == 201)
        #expect(try second.exchange(.get("/files/f.bin")).status == 404)
        let location = try first.begin(.v8, "PUT", "/files/g.bin", [1])
        #expect(try second.exchange(.retrieval(.v8, location)).status == 404)
        #expect(throws: StoreError.inUse) { try UploadStore.open(root: first.directory.path + "/data") }
    }

    @Test("H11-25: the uploads of a stopped server can be continued in the next server of the same process")
    func again() throws {
        let target = RecordingTarget()
        let host = try EmbeddedServer(targets: [("inbox", target)])
        let connection = try host.connect()
        try connection.send(.creation(.v8, "POST", "/inbox/doc", complete: true, .declared(10)))
        let location = try #require(try connection.requireInterim().location)
        try connection.send([1, 2, 3, 4])
        let begun = ContinuousClock.now
        host.server.stopBlocking()
        #expect(ContinuousClock.now - begun < .seconds(30), "a stop waits for running responses only")
        host.store.close()
        let store = try UploadStore.open(
            root: host.directory.path + "/data", configuration: StoreConfiguration(minFree: 0))
        let next = Server(
            configuration: ServerConfiguration(listeners: [.tcp(host: "127.0.0.1", port: host.port)], logLevel: .error),
            store: store, handlers: [("inbox", target)])
        try next.startBlocking()
        let state = try host.exchange(.retrieval(.v8, location))
        let offset = try #require(state.offset)
        #expect(offset <= 4)
        let remaining = Array([1, 2, 3, 4, 5, 6, 7, 8, 9, 10][Int(offset)...] as ArraySlice<UInt8>)
        let response = try host.exchange(.append(.v8, location, at: Int(offset), complete: true, .bytes(remaining)))
        #expect(response.status == 203)
        #expect(target.calls.map(\.content) == [[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]])
        next.stopBlocking()
        store.close()
    }
}
