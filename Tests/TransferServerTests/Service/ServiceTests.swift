import ConformanceKit
import HTTPTestSupport
import ResumableUpload
import SystemCalls
import TestSupport
import Testing
import UploadStorage

@testable import TransferServer

/// Tests the service in this process without a socket, and over a socket.
@Suite("The service", .blocking)
struct ServiceTests {
    @Test("An upload in parts becomes a file", arguments: Transport.allCases)
    func upload(_ transport: Transport) throws {
        let service = try transport.start()
        let location = try service.begin(.v8, "/files/f", [1, 2])
        let state = try service.retrieve(location)
        #expect(state.status == 204 && state.offset == 2)
        #expect(try service.download("f").status == 404)
        let part = try service.exchange(.append(.v8, location, at: 2, complete: false, .bytes([3])))
        #expect(part.status == 204 && part.offset == 3)
        let last = try service.exchange(.append(.v8, location, at: 3, complete: true, .bytes([4])))
        #expect(last.status == 201 && last.complete == true)
        #expect(last.location == "/files/f")
        let file = try service.download("f")
        #expect(file.status == 200 && file.content == [1, 2, 3, 4])
        let range = try service.download("f", [("Range", "bytes=1-2")])
        #expect(range.status == 206 && range.content == [2, 3])
        #expect(range.value("Content-Range") == "bytes 1-2/4")
    }

    @Test("Content arrives in pieces of any size", arguments: Transport.allCases)
    func pieces(_ transport: Transport) throws {
        let service = try transport.start()
        let pieces: [[UInt8]] = [[1], [2, 3], [UInt8](repeating: 4, count: 100_000), [5]]
        let response = try service.exchange(.creation(.v8, "PUT", "/files/f", complete: true, .chunks(pieces)))
        #expect(response.status == 201)
        #expect(try service.download("f").content == pieces.flatMap { $0 })
    }

    @Test("An append at another offset is refused with 409 and the current offset", arguments: Transport.allCases)
    func otherOffset(_ transport: Transport) throws {
        let service = try transport.start()
        let location = try service.begin(.v8, "/files/f", [1, 2])
        let response = try service.exchange(.append(.v8, location, at: 1, complete: true, .bytes([9])))
        #expect(response.status == 409)
        #expect(response.offset == 2 && response.complete == false)
        #expect(response.problem != nil)
        #expect(try service.retrieve(location).offset == 2)
    }

    @Test("A canceled upload no longer exists", arguments: Transport.allCases)
    func canceled(_ transport: Transport) throws {
        let service = try transport.start()
        let location = try service.begin(.v8, "/files/f", [1, 2])
        #expect(try service.exchange(.cancellation(.v8, location)).status == 204)
        #expect([404, 410].contains(try service.retrieve(location).status))
        let append = Request.append(.v8, location, at: 2, complete: true, .bytes([]))
        #expect([404, 410].contains(try service.exchange(append).status))
    }

    @Test("Content beyond the limits is refused with 413", arguments: Transport.allCases)
    func limits(_ transport: Transport) throws {
        let service = try transport.start(.with { $0.server.limits.maxSize = 10 })
        let response = try service.exchange(
            .creation(.v8, "PUT", "/files/f", complete: true, .bytes([UInt8](repeating: 0, count: 11))))
        #expect(response.status == 413)
        #expect(response.limits?["max-size"] == 10)
    }

    @Test(
        "Each resource answers its methods and refuses all others", arguments: Transport.allCases)
    func places(_ transport: Transport) throws {
        let service = try transport.start()
        for (method, target, status) in [
            ("GET", "/healthz", 200), ("HEAD", "/readyz", 200), ("POST", "/healthz", 405), ("GET", "/nothing", 404),
            ("GET", "/files/..", 400), ("OPTIONS", "*", 204), ("GET", "*", 400), ("HEAD", "/uploads/none", 404),
            ("PATCH", "/files/f", 405), ("OPTIONS", "/files/f", 204),
        ] {
            #expect(try service.exchange(Request(method, target)).status == status, "\(method) \(target)")
        }
    }

    @Test("In process, the first interim response announces the upload, and later interim responses report offsets")
    func interimResponses() throws {
        let service = try InProcessService()
        let running = service.begin(.creation(.v8, "PUT", "/files/f", complete: true, .declared(40_000_000)))
        let announcement = try #require(running.interimResponses.first)
        #expect(announcement.status == 104 && announcement.location?.hasPrefix("/uploads/") == true)
        running.receive([UInt8](repeating: 7, count: 9_000_000))
        // Another thread makes bytes durable. The service reports the offset when the next content arrives.
        let report: InterimResponse? = pollUntil(within: .seconds(60)) {
            running.receive([7])
            return running.interimResponses.dropFirst().first
        }
        #expect((1...10_000_000).contains(report?.offset ?? 0))
        running.interrupt()
    }

    @Test("In process, an interrupted append keeps the bytes that have arrived")
    func interrupted() throws {
        let service = try InProcessService()
        let location = try service.begin(.v8, "/files/f", [1, 2])
        let running = service.begin(.append(.v8, location, at: 2, complete: true, .declared(10)))
        running.receive([3, 4])
        running.interrupt()
        let state = try service.retrieve(location)
        #expect(state.offset == 4 && state.complete == false)
        #expect(try service.download("f").status == 404)
    }

    @Test(
        "In process, a request without content gets the durable offset if the synchronization of earlier bytes fails",
        arguments: ["HEAD", "PATCH"])
    func failedSynchronization(_ method: String) throws {
        let plan = FaultPlan()
        let store = try UploadStore(
            catalog: MemoryCatalog(plan: plan), area: MemoryBlobArea(plan: plan),
            configuration: StoreConfiguration(minFree: 0))
        let service = try InProcessService(store: store)
        let location = try service.begin(.v8, "/files/f", [1, 2])
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
        let response = try service.exchange(
            method == "HEAD" ? .retrieval(.v8, location) : .append(.v8, location, at: 2, complete: false, .bytes([])))
        #expect(response.status == 204 && response.offset == 2, "\(response)")
    }

    @Test("If the catalog cannot be reached, the end of the request makes only one more attempt to record its bytes")
    func unavailableCatalog() throws {
        let plan = FaultPlan()
        let store = try UploadStore(
            catalog: MemoryCatalog(plan: plan), area: MemoryBlobArea(), configuration: StoreConfiguration(minFree: 0))
        let service = try InProcessService(store: store)
        let location = try service.begin(.v8, "/files/f", [1, 2])
        func attempts() -> Int { plan.history.count { $0 == .commit } }
        let before = attempts()
        plan.fail(.commit, with: .timedOut)
        let append = Request.append(.v8, location, at: 2, complete: false, .bytes([3, 4]))
        let response = try service.exchange(append)
        #expect(response.status == 503 && response.offset == 2, "\(response)")
        #expect(attempts() - before == 2)
        plan.fail(.commit, with: nil)
        #expect(try service.exchange(append).offset == 4)
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
