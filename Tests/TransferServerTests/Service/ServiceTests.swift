import HTTPSemantics
import ResumableUpload
import SystemCalls
import TestSupport
import Testing
import UploadStorage

@testable import TransferServer

/// Tests the service in this process without a socket, and over a socket.
@Suite("The service", .timeLimit(.minutes(15)))
struct ServiceTests {
    private static let draft: Fields = ["Upload-Draft-Interop-Version": "8"]

    private func append(at offset: Int, complete: Bool) -> Fields {
        Self.draft + [
            "Content-Type": "application/partial-upload", "Upload-Offset": "\(offset)",
            "Upload-Complete": complete ? "?1" : "?0",
        ]
    }

    /// Creates an upload of a file and returns its location.
    private func create(_ service: any TestedService, _ name: String, _ content: [UInt8]) throws -> String {
        let response = try service.exchange(
            .put, "/files/\(name)", Self.draft + ["Upload-Complete": "?0"], content)
        #expect(response.status == 201)
        #expect(response.fields["Upload-Complete"] == "?0")
        return try #require(response.fields["Location"])
    }

    @Test("An upload in parts becomes a file", arguments: Transport.allCases)
    func upload(_ transport: Transport) throws {
        let service = try transport.start()
        let location = try create(service, "f", [1, 2])
        let state = try service.exchange(.head, location, Self.draft)
        #expect(state.status == 204 && state.fields["Upload-Offset"] == "2")
        #expect(try service.exchange(.get, "/files/f").status == 404)
        let part = try service.exchange(.patch, location, append(at: 2, complete: false), [3])
        #expect(part.status == 204 && part.fields["Upload-Offset"] == "3")
        let last = try service.exchange(.patch, location, append(at: 3, complete: true), [4])
        #expect(last.status == 201 && last.fields["Upload-Complete"] == "?1")
        #expect(last.fields["Location"] == "/files/f")
        let file = try service.exchange(.get, "/files/f")
        #expect(file.status == 200 && file.content == [1, 2, 3, 4])
        let range = try service.exchange(.get, "/files/f", ["Range": "bytes=1-2"])
        #expect(range.status == 206 && range.content == [2, 3])
        #expect(range.fields["Content-Range"] == "bytes 1-2/4")
    }

    @Test("Content arrives in pieces of any size", arguments: Transport.allCases)
    func pieces(_ transport: Transport) throws {
        let service = try transport.start()
        let pieces: [[UInt8]] = [[1], [2, 3], [UInt8](repeating: 4, count: 100_000), [5]]
        let response = try service.exchange(.put, "/files/f", Self.draft + ["Upload-Complete": "?1"], pieces)
        #expect(response?.status == 201)
        #expect(try service.exchange(.get, "/files/f").content == pieces.flatMap { $0 })
    }

    @Test("An append at another offset is refused with 409 and the current offset", arguments: Transport.allCases)
    func otherOffset(_ transport: Transport) throws {
        let service = try transport.start()
        let location = try create(service, "f", [1, 2])
        let response = try service.exchange(.patch, location, append(at: 1, complete: true), [9])
        #expect(response.status == 409)
        #expect(response.fields["Upload-Offset"] == "2" && response.fields["Upload-Complete"] == "?0")
        #expect(response.fields["Content-Type"] == "application/problem+json")
        #expect(try service.exchange(.head, location, Self.draft).fields["Upload-Offset"] == "2")
    }

    @Test("A canceled upload no longer exists", arguments: Transport.allCases)
    func canceled(_ transport: Transport) throws {
        let service = try transport.start()
        let location = try create(service, "f", [1, 2])
        #expect(try service.exchange(.delete, location, Self.draft).status == 204)
        #expect([404, 410].contains(try service.exchange(.head, location, Self.draft).status))
        #expect([404, 410].contains(try service.exchange(.patch, location, append(at: 2, complete: true), []).status))
    }

    @Test("Content beyond the limits is refused with 413", arguments: Transport.allCases)
    func limits(_ transport: Transport) throws {
        let service = try transport.start(UploadLimits(maxSize: 10, maxAge: 604_800))
        let response = try service.exchange(
            .put, "/files/f", Self.draft + ["Upload-Complete": "?1"], [UInt8](repeating: 0, count: 11))
        #expect(response.status == 413)
        #expect(response.fields["Upload-Limit"]?.contains("max-size=10") == true)
    }

    @Test(
        "Each resource answers its methods and refuses all others", arguments: Transport.allCases,
        [
            (HTTPSemantics.Method.get, "/healthz", 200), (.head, "/readyz", 200), (.post, "/healthz", 405),
            (.get, "/nothing", 404), (.get, "/files/..", 400), (.options, "*", 204), (.get, "*", 400),
            (.head, "/uploads/none", 404), (.patch, "/files/f", 405), (.options, "/files/f", 204),
        ])
    func places(_ transport: Transport, _ place: (method: HTTPSemantics.Method, target: String, status: Int)) throws {
        let response = try transport.start().exchange(place.method, place.target)
        #expect(response.status == place.status)
    }

    @Test("In process, the first interim response announces the upload, and later interim responses report offsets")
    func interimResponses() throws {
        let service = try InProcessService(UploadLimits(maxAge: 604_800))
        let running = try service.begin(.put, "/files/f", Self.draft + ["Upload-Complete": "?1"], .length(40_000_000))
        let announcement = try #require(running.interimResponses.first)
        #expect(announcement.hasPrefix("HTTP/1.1 104 ") && announcement.contains("Location: /uploads/"))
        running.receive([UInt8](repeating: 7, count: 9_000_000))
        // Bytes become durable on another thread, and the next piece of content reports them.
        let report: String? = pollUntil(within: .seconds(60)) {
            running.receive([7])
            return running.interimResponses.dropFirst().first
        }
        let offset = try #require(report?.firstMatch(of: /Upload-Offset: (\d+)/)?.1)
        #expect((1...10_000_000).contains(Int(offset) ?? 0))
        running.interrupt()
    }

    @Test("In process, an interrupted append keeps the bytes that have arrived")
    func interrupted() throws {
        let service = try InProcessService(UploadLimits(maxAge: 604_800))
        let location = try create(service, "f", [1, 2])
        let running = try service.begin(.patch, location, append(at: 2, complete: true), .length(10))
        running.receive([3, 4])
        running.interrupt()
        let state = try service.exchange(.head, location, Self.draft)
        #expect(state.fields["Upload-Offset"] == "4" && state.fields["Upload-Complete"] == "?0")
        #expect(try service.exchange(.get, "/files/f").status == 404)
    }

    @Test(
        "In process, a request without content gets the durable offset if the synchronization of earlier bytes fails",
        arguments: [HTTPSemantics.Method.head, .patch])
    func failedSynchronization(_ method: HTTPSemantics.Method) throws {
        let plan = FaultPlan()
        let store = try UploadStore(
            catalog: MemoryCatalog(plan: plan), area: MemoryBlobArea(plan: plan),
            configuration: StoreConfiguration(minFree: 0))
        let service = try InProcessService(UploadLimits(maxAge: 604_800), store: store)
        let location = try create(service, "f", [1, 2])
        let id = try #require(UploadID(parsing: location.dropFirst("/uploads/".count)))
        guard case .lease(let earlier) = try store.takeOver(id, principal: "anonymous", waitForProcessing: .zero) else {
            Issue.record("the upload could not be taken over")
            return
        }
        try [3, 4 as UInt8].withUnsafeBytes { try earlier.append($0) }
        // The synchronization fails after the next request has taken over the upload.
        let isRunning = Monitor(false)
        plan.run(before: .synchronize) {
            isRunning.withLock { $0 = true }
            let isTakenOver: Bool? = pollUntil(within: .seconds(60)) { earlier.isCurrent ? nil : true }
            #expect(isTakenOver == true)
        }
        plan.fail(.synchronize, with: .inputOutput)
        earlier.startAcknowledging()
        let hasStarted: Bool? = pollUntil(within: .seconds(60)) { isRunning.withLock { $0 } ? true : nil }
        #expect(hasStarted == true)
        let (fields, content): (Fields, [UInt8]?) =
            method == .head ? (Self.draft, nil) : (append(at: 2, complete: false), [])
        let response = try service.exchange(method, location, fields, content)
        #expect(response.status == 204 && response.fields["Upload-Offset"] == "2", "\(response)")
    }

    @Test("A connection entry records the reason of the first close, and ignores later ones")
    func entry() throws {
        let entry = ConnectionEntry(
            output: SocketOutput(descriptor: -1), peer: nil, client: ConnectionClient(nil, isExempt: true),
            credentials: nil, now: 0)
        #expect(entry.closeReason == nil && entry.isAwaited)
        entry.close(reason: .takenOver)
        entry.close(reason: .stopping)
        #expect(entry.closeReason == .takenOver && !entry.isAwaited)
    }

    @Test("A connection that waits for its client longer than the timeout is ended")
    func overdue() {
        let timeouts = ConnectionTimeouts(header: 10, idle: 100)
        func reason(_ phase: ConnectionEntry.Phase, after nanoseconds: Int64) -> ConnectionEntry.CloseReason? {
            let entry = ConnectionEntry(
                output: SocketOutput(descriptor: -1), peer: nil, client: ConnectionClient(nil, isExempt: true),
                credentials: nil, now: 0)
            entry.enter(phase, at: 1000)
            entry.close(ifOverdue: timeouts, now: 1000 + nanoseconds)
            return entry.closeReason
        }
        #expect(reason(.head(first: true), after: 10) == nil)
        #expect(reason(.head(first: true), after: 11) == .timeout)
        #expect(reason(.head(first: false), after: 11) == nil)
        #expect(reason(.content, after: 101) == .timeout)
        #expect(reason(.server, after: 1_000_000_000_000) == nil)
        #expect(reason(.storing, after: 1_000_000_000_000) == nil)
    }
}
