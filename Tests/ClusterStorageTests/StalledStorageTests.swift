import HTTPSemantics
import ObjectStorage
import SystemCalls
import TestSupport
import Testing

@testable import ClusterStorage
@testable import UploadStorage

/// Tests uploads whose bytes the object storage does not accept.
@Suite(.serialized, .enabled(if: PostgreSQLCluster.isRequired, "takes long: make test-scale runs it"))
struct StalledStorageTests {
    private static let small = PieceLimits(maxSize: 4096, maxInlineSize: 256, minMemory: 128, memory: 16 << 10)

    /// Requests that store objects, those of uploads or all, wait until ``end()``, and then fail.
    private final class Stall: Sendable {
        private let hasEnded = Monitor(false)
        let requests = Counter()

        init(_ objects: MemoryObjectStore, of prefix: String = "data/") {
            objects.setFault { [hasEnded, requests] operation in
                guard case .put(let key, _) = operation, key.hasPrefix(prefix) else { return nil }
                requests.next()
                hasEnded.waitForever { $0 ? () : nil }
                return .fail(.unavailable("test"))
            }
        }

        func end() {
            hasEnded.withLock { $0 = true }
            hasEnded.notifyAll()
        }
    }

    /// An upload with three acknowledged bytes, to which a thread can append more.
    private final class Writer: Sendable {
        let lease: UploadLease
        let id: UploadID
        let revocations = Counter()
        private let parts = Counter()
        private let outcome = Monitor<StoreError?>(nil)

        init(_ store: UploadStore) throws {
            lease = try store.create(NewUpload(principal: "alice", method: .put, target: "/files/f"))
            id = try #require(lease.id)
            lease.onRevocation { [revocations] in revocations.next() }
            try append(Array("abc".utf8))
            #expect(try lease.acknowledge() == 3)
        }

        private func append(_ bytes: [UInt8]) throws(StoreError) {
            let result = bytes.withUnsafeBytes { bytes in
                Result { () throws(StoreError) in try lease.append(bytes) }
            }
            try result.get()
        }

        /// Appends bytes until that fails, and then releases the lease.
        func start() throws -> WorkerThread {
            try WorkerThread(name: "writer") { [self] in
                do throws(StoreError) {
                    while true {
                        try append([UInt8](repeating: 1, count: 1000))
                        parts.next()
                    }
                } catch { outcome.withLock { $0 = error } }
                outcome.notifyAll()
                lease.release()
            }
        }

        /// Waits until no more bytes are accepted.
        func awaitFullMemory() {
            var (last, equal) = (0, 0)
            let isFull: Bool? = pollUntil(within: .seconds(60)) {
                (last, equal) = (parts.value, parts.value == last ? equal + 1 : 0)
                return equal >= 50 ? true : nil
            }
            #expect(isFull == true)
        }

        /// The error with which the thread has ended.
        func awaitError() -> StoreError? { outcome.wait(until: seconds(60)) { $0 } }
    }

    @Test("while uploads wait for a stalled storage, offsets can be read, and all uploads are released")
    func yields() throws {
        let fixture = try ClusterFixture()
        let first = try fixture.store(over: fixture.node("a"), limits: Self.small)
        let second = try fixture.store(over: fixture.node("b"))
        let idle = try Writer(first)
        let stall = Stall(fixture.objects)
        let writers = try (0..<5).map { _ in try Writer(first) }
        var threads = try writers.map { try $0.start() }
        for writer in writers { writer.awaitFullMemory() }
        let offsets = Monitor<[UploadID: Int64]>([:])
        for writer in writers {
            threads.append(
                try WorkerThread(name: "read") {
                    guard let offset = try? first.record(writer.id).offset else { return }
                    offsets.withLock { $0[writer.id] = offset }
                    offsets.notifyAll()
                })
        }
        let expected = Dictionary(uniqueKeysWithValues: writers.map { ($0.id, Int64(3)) })
        #expect(offsets.wait(until: seconds(20)) { $0.count == 5 ? $0 : nil } == expected)
        // Another server needs all these uploads at the same time.
        let leases = Monitor<[UploadID: UploadLease]>([:])
        let isOver = Monitor(false)
        for id in (writers + [idle]).map(\.id) {
            threads.append(
                try WorkerThread(name: "take-over") {
                    while !isOver.withLock({ $0 }) {
                        guard
                            case .lease(let lease)? = try? second.takeOver(
                                id, principal: "alice", waitForProcessing: .zero)
                        else { continue }
                        leases.withLock { $0[id] = lease }
                        return leases.notifyAll()
                    }
                })
        }
        let idleOffset = leases.wait(until: seconds(20)) { $0[idle.id]?.received }
        #expect(idleOffset == 3)
        let areHandedOver = leases.wait(until: seconds(60)) { $0.count == 6 ? true : nil }
        #expect(areHandedOver == true)
        isOver.withLock { $0 = true }
        if areHandedOver == nil { stall.end() }
        for writer in writers {
            #expect(leases.withLock { $0[writer.id]?.received } == 3)
            #expect(writer.revocations.value == 1 && writer.awaitError() == .superseded)
        }
        // Nothing of this needed a response of the storage.
        stall.end()
        for thread in threads { thread.join() }
        idle.lease.release()
        leases.withLock { $0 = [:] }
    }

    @Test("if bytes cannot be stored in the background, the request that waits gets the error, and is not ended before")
    func errorOfWriter() throws {
        let fixture = try ClusterFixture()
        let store = try fixture.store(over: fixture.node("a"), limits: Self.small)
        let stall = Stall(fixture.objects)
        let writer = try Writer(store)
        let thread = try writer.start()
        writer.awaitFullMemory()
        writer.lease.startAcknowledging()
        stall.end()
        guard case .unavailable? = writer.awaitError() else {
            Issue.record("\(String(describing: writer.awaitError()))")
            return
        }
        thread.join()
        #expect(writer.revocations.value == 0)
        #expect(try store.record(writer.id).offset == 3)
    }

    @Test("a request that waits for an acknowledgment in the background gets its error")
    func errorOfAcknowledgment() throws {
        let fixture = try ClusterFixture()
        let store = try fixture.store(over: fixture.node("a"))
        let stall = Stall(fixture.objects)
        let writer = try Writer(store)
        let bytes = [UInt8](repeating: 1, count: 200_000)
        try bytes.withUnsafeBytes { try writer.lease.append($0) }
        writer.lease.startAcknowledging()
        let isStoring: Bool? = pollUntil(within: .seconds(60)) {
            stall.requests.value > 0 ? true : nil
        }
        #expect(isStoring == true)
        let outcome = Monitor<StoreError?>(nil)
        let waiting = try WorkerThread(name: "acknowledge") {
            do throws(StoreError) { _ = try writer.lease.acknowledge() } catch { outcome.withLock { $0 = error } }
            writer.lease.release()
        }
        let isWaiting: Bool? = pollUntil(within: .seconds(60)) {
            writer.lease.upload.monitor.withLock { $0.machine.isHolderWaiting } ? true : nil
        }
        #expect(isWaiting == true)
        stall.end()
        waiting.join()
        guard case .unavailable? = outcome.withLock({ $0 }) else {
            Issue.record("\(String(describing: outcome.withLock { $0 }))")
            return
        }
        #expect(writer.revocations.value == 0)
    }

    @Test("an upload is released although a HEAD, or the request with its last bytes, waits for a stalled storage")
    func waitingRequests() throws {
        let fixture = try ClusterFixture()
        let first = try fixture.store(over: fixture.node("a"))
        let second = try fixture.store(over: fixture.node("b"))
        let (retrieved, ending) = (try Writer(first), try Writer(first))
        let stall = Stall(fixture.objects)
        defer { stall.end() }
        let bytes = [UInt8](repeating: 1, count: 200_000)
        try bytes.withUnsafeBytes { try retrieved.lease.append($0) }
        let threads = [
            try WorkerThread(name: "head") {
                guard
                    case .lease(let lease)? = try? first.takeOver(
                        retrieved.id, principal: "alice", waitForProcessing: .zero, exclusive: true)
                else { return }
                _ = try? lease.acknowledge()
                lease.release()
            },
            try WorkerThread(name: "last bytes") {
                do throws(StoreError) {
                    let appended = bytes.withUnsafeBytes { bytes in
                        Result { () throws(StoreError) in try ending.lease.append(bytes, completes: true) }
                    }
                    try appended.get()
                    try ending.lease.beginProcessing(shouldMarkDurably: false)
                } catch {}
                ending.lease.release()
            },
        ]
        let areStalled: Bool? = pollUntil(within: .seconds(60)) { stall.requests.value == 2 ? true : nil }
        #expect(areStalled == true)
        var leases: [UploadLease] = []
        for writer in [retrieved, ending] {
            let lease = awaitTakeOver(of: writer.id, by: second)
            leases.append(try #require(lease))
        }
        // Nothing of this needed a response of the storage.
        stall.end()
        for thread in threads { thread.join() }
        #expect(try leases.map { try $0.acknowledge() } == [3, 3])
        for lease in leases + [retrieved.lease, ending.lease] { lease.release() }
    }

    @Test("an upload is released at once, although many others wait for a stalled storage")
    func manyStalled() throws {
        let fixture = try ClusterFixture()
        let node = try fixture.node("a")
        let first = try fixture.store(over: node)
        let second = try fixture.store(over: fixture.node("b"))
        let idle = try Writer(first)
        let writers = try (0..<150).map { _ in try Writer(first) }
        let stall = Stall(fixture.objects)
        defer { stall.end() }
        let bytes = [UInt8](repeating: 1, count: 70_000)
        for writer in writers { try bytes.withUnsafeBytes { try writer.lease.append($0) } }
        let session = try node.node.currentSession()
        try fixture.run(
            "SELECT pg_notify('onward_' || $1, 'request ' || encode(id, 'hex') || ' 0') FROM unnest($2) AS u (id)",
            [.text("\(session)"), .byteArrays(writers.map(\.id.bytes))])
        guard case .lease(let lease) = try second.takeOver(idle.id, principal: "alice", waitForProcessing: .zero) else {
            Issue.record("the upload is not released")
            return
        }
        #expect(lease.received == 3)
        stall.end()
        lease.release()
        for writer in writers + [idle] { writer.lease.release() }
    }

    @Test("while a hundred uploads wait for a stalled storage, the store is not ready, but not stuck")
    func health() throws {
        let fixture = try ClusterFixture()
        let store = try fixture.store(over: fixture.node("a"))
        let writers = try (0..<100).map { _ in try Writer(store) }
        let stall = Stall(fixture.objects, of: "")
        defer { stall.end() }
        try acknowledge(writers)
        let areStalled: Bool? = pollUntil(within: .seconds(60)) { stall.requests.value >= 4 ? true : nil }
        #expect(areStalled == true)
        // A thread ends its work only after the storage has responded.
        #expect(store.liveHealth(until: seconds(5)) == HealthProbe.stuck)
        stall.end()
        for writer in writers { writer.lease.release() }
    }

    /// Begins to acknowledge uploads in the background whose bytes need requests to the storage, which stalls.
    private func acknowledge(_ writers: [Writer]) throws {
        let bytes = [UInt8](repeating: 1, count: 70_000)
        for writer in writers {
            try bytes.withUnsafeBytes { try writer.lease.append($0) }
            writer.lease.startAcknowledging()
        }
    }

    @Test("if the storage fails, the uploads that wait for it get the error together, not one after the other")
    func failure() throws {
        let fixture = try ClusterFixture()
        let store = try fixture.store(over: fixture.node("a"))
        let writers = try (0..<60).map { _ in try Writer(store) }
        let stall = Stall(fixture.objects)
        defer { stall.end() }
        try acknowledge(writers)
        let count = StoreContext.sharedAcknowledgmentThreads
        #expect(pollUntil(within: .seconds(60)) { stall.requests.value == count ? true : nil } == true)
        stall.end()
        let failures: Int? = pollUntil(within: .seconds(60)) {
            let failures = writers.filter { if case .unavailable? = $0.lease.failure { true } else { false } }.count
            return failures == writers.count ? failures : nil
        }
        #expect(failures == 60)
        // The others were not tried.
        #expect(stall.requests.value == count)
        for writer in writers { writer.lease.release() }
        // Uploads that begin later are tried, first while the storage still fails, and then after the failure.
        let next = try Writer(store)
        try acknowledge([next])
        #expect(pollUntil(within: .seconds(60)) { stall.requests.value > count ? true : nil } == true)
        next.lease.release()
        fixture.objects.setFault { _ in nil }
        let last = try Writer(store)
        try acknowledge([last])
        #expect(pollUntil(within: .seconds(60)) { last.lease.acknowledged == 70_003 ? true : nil } == true)
        last.lease.release()
    }

    @Test("bytes are durable before their upload is released, although many acknowledgments wait for the storage")
    func yieldsBesideAcknowledgments() throws {
        let fixture = try ClusterFixture()
        let first = try fixture.store(over: fixture.node("a"))
        let second = try fixture.store(over: fixture.node("b"))
        let (requested, queued) = (try Writer(first), try Writer(first))
        let writers = try (0..<60).map { _ in try Writer(first) }
        let stall = Stall(fixture.objects)
        defer { stall.end() }
        try acknowledge(writers)
        for writer in [requested, queued] { try Array("defg".utf8).withUnsafeBytes { try writer.lease.append($0) } }
        // This acknowledgment waits behind the others.
        queued.lease.startAcknowledging()
        for writer in [requested, queued] {
            let lease = awaitTakeOver(of: writer.id, by: second)
            #expect(lease?.received == 7)
            lease?.release()
        }
        stall.end()
        for writer in writers + [requested, queued] { writer.lease.release() }
    }

    /// Repeats a take-over until it succeeds; nil if it does not within a minute.
    private func awaitTakeOver(of id: UploadID, by store: UploadStore) -> UploadLease? {
        pollUntil(within: .seconds(60)) {
            guard case .lease(let lease)? = try? store.takeOver(id, principal: "alice", waitForProcessing: .zero) else {
                return nil
            }
            return lease
        }
    }
}
