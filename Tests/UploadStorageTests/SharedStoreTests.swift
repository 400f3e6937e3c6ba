import HTTPSemantics
import ResumableUpload
import Synchronization
import SystemCalls
import TestSupport
import Testing

@testable import UploadStorage

/// Several stores, each as if on a machine of its own, with one catalog and one blob area in memory.
private final class SharedStores: Sendable {
    let holds = SharedHolds()
    let stores: [UploadStore]

    init(_ count: Int = 2, acquisitionWait: Duration = .seconds(3)) throws {
        let holds = holds
        stores = try (0..<count).map { node in
            var configuration = StoreConfiguration(minFree: 0)
            configuration.processingWait = .milliseconds(50)
            configuration.acquisitionWait = acquisitionWait
            return try UploadStore(
                catalog: NodeCatalog(holds, node: node), area: NodeArea(holds), configuration: configuration)
        }
    }

    deinit { for store in stores { store.close() } }
}

@Suite struct SharedStoreTests {
    enum Kind: CaseIterable {
        /// A plain upload.
        case plain
        /// A short upload that has no row before its end.
        case short
        case recorded
    }

    private func create(_ kind: Kind, _ store: UploadStore) throws -> UploadLease {
        let lease =
            switch kind {
            case .plain: try store.createTransient(.testing())
            case .short: try store.create(.testing(), shouldRecordAtOnce: false)
            case .recorded: try store.create(.testing())
            }
        try lease.append("hello")
        return lease
    }

    @Test(
        "a publication succeeds if its transaction was committed, even if its response was lost",
        arguments: Kind.allCases)
    func lostResponse(kind: Kind) throws {
        let cluster = try SharedStores()
        for status in [201, 200] as [Status] {
            let lease = try create(kind, cluster.stores[0])
            cluster.holds.setFault(.responseLost(failingReads: 0))
            #expect(try lease.publish(.testing(name("f"))).status == status)
            let id = lease.id
            lease.release()
            if kind == .plain { continue }
            guard case .complete(let response) = try cluster.stores[1].record(#require(id)).phase else {
                Issue.record("the upload is not complete")
                return
            }
            #expect(response.status == status)
        }
        #expect(try cluster.stores[1].publishedFile(name("f")).readAll() == Array("hello".utf8))
    }

    @Test(
        "if the outcome of a publication is unknown at the end of its request, the next request finds the file",
        arguments: Kind.allCases, [1, 100])
    func unknownOutcome(kind: Kind, failingReads: Int) throws {
        let cluster = try SharedStores()
        let lease = try create(kind, cluster.stores[0])
        let id = lease.id
        cluster.holds.setFault(.responseLost(failingReads: failingReads))
        #expect(throws: StoreError.unavailable("test")) { try lease.publish(.testing(name("f"))) }
        lease.release()
        cluster.holds.connect()
        #expect(try cluster.stores[1].publishedFile(name("f")).readAll() == Array("hello".utf8))
        for store in cluster.stores where kind != .plain {
            let outcome = try store.takeOver(#require(id), principal: "alice", waitForProcessing: .zero)
            guard case .complete(let record) = outcome, case .complete(let response) = record.phase else {
                Issue.record("the upload is not complete: \(outcome)")
                return
            }
            #expect(response.status == 201)
        }
        let again = try create(kind, cluster.stores[1])
        #expect(try again.publish(.testing(name("f"))).status == 200)
        again.release()
    }

    @Test(
        "if the transaction of a publication fails, nothing is published, and the next publication succeeds",
        arguments: Kind.allCases)
    func failedPublication(kind: Kind) throws {
        let cluster = try SharedStores()
        let lease = try create(kind, cluster.stores[0])
        let id = lease.id
        cluster.holds.setFault(.notMade)
        #expect(throws: StoreError.unavailable("test")) { try lease.publish(.testing(name("f"))) }
        lease.release()
        #expect(throws: StoreError.notFound) { try cluster.stores[1].publishedFile(name("f")) }
        let next = try kind == .recorded ? cluster.stores[1].lease(#require(id)) : create(kind, cluster.stores[1])
        #expect(try next.publish(.testing(name("f"))).status == 201)
        next.release()
        #expect(try cluster.stores[0].publishedFile(name("f")).readAll() == Array("hello".utf8))
    }

    @Test("a request at another store takes the upload over, with all received bytes")
    func takeOver() throws {
        let cluster = try SharedStores()
        let first = try cluster.stores[0].create(.testing())
        let id = try #require(first.id)
        let isRevoked = Monitor(false)
        first.onRevocation { isRevoked.withLock { $0 = true } }
        try first.append("hello ")
        let second = try cluster.stores[1].lease(id)
        #expect(second.received == 6)
        #expect(isRevoked.withLock { $0 })
        #expect(throws: StoreError.superseded) { try first.append("zombie") }
        #expect(throws: StoreError.superseded) { _ = try first.acknowledge() }
        first.release()
        try second.append("world")
        #expect(try second.acknowledge() == 11)
        #expect(try cluster.stores[0].record(id).offset == 11)
        second.release()
        let third = try cluster.stores[0].lease(id)
        #expect(String(decoding: try third.readAll(), as: UTF8.self) == "hello world")
        third.release()
    }

    @Test("the modification time of a file is that of the shared clock, and grows with each file of a store")
    func modificationTime() throws {
        let reading = ClockReading(wall: 1_500_000_000_123_456_789, boot: SystemClock.bootNanoseconds())
        var configuration = StoreConfiguration(minFree: 0)
        configuration.clock = { reading }
        let store = try UploadStore(
            catalog: NodeCatalog(SharedHolds(), node: 0), area: MemoryBlobArea(), configuration: configuration)
        defer { store.close() }
        for (index, path) in ["a", "b"].enumerated() {
            let lease = try store.create(.testing())
            try lease.append("abc")
            _ = try lease.publish(.testing(name(path)))
            let attributes = try store.publishedFile(name(path)).attributes
            #expect(attributes.modifiedSeconds == 1_500_000_000)
            #expect(attributes.modifiedNanoseconds == 123_456_789 + Int64(index))
        }
    }

    @Test("a store releases an upload at the end of its use, and another store acquires it without notifying the first")
    func release() throws {
        let cluster = try SharedStores()
        let first = try cluster.stores[0].create(.testing())
        let id = try #require(first.id)
        try first.append("abc")
        first.release()
        #expect(cluster.holds.holder(of: id) == nil)
        cluster.holds.stop(0)
        let second = try cluster.stores[1].lease(id)
        #expect(second.received == 3)
        second.release()
    }

    @Test("an upload whose target runs is not released, and the other store gets its response")
    func processing() throws {
        let cluster = try SharedStores(acquisitionWait: .milliseconds(100))
        let lease = try cluster.stores[0].create(.testing())
        let id = try #require(lease.id)
        try lease.append("abc")
        try lease.beginProcessing(shouldMarkDurably: true)
        #expect(throws: StoreError.heldElsewhere) { try cluster.stores[1].lease(id) }
        #expect(try cluster.stores[1].record(id).phase == .processing)
        try lease.complete(with: Response(status: 201))
        lease.release()
        let outcome = try cluster.stores[1].takeOver(id, principal: "alice", waitForProcessing: .zero)
        guard case .complete(let record) = outcome else {
            Issue.record("the final response was expected, not \(outcome)")
            return
        }
        #expect(record.phase == .complete(Response(status: 201)))
    }

    @Test("the upload of a store that has stopped is taken over, and late changes of that store have no effect")
    func stoppedStore() throws {
        let cluster = try SharedStores(acquisitionWait: .milliseconds(100))
        let first = try cluster.stores[0].create(.testing())
        let id = try #require(first.id)
        try first.append("abc")
        #expect(try first.acknowledge() == 3)
        try first.append("lost")
        // The process is stopped: it is still the holder, and responds to nothing.
        cluster.holds.stop(0)
        #expect(throws: StoreError.heldElsewhere) { try cluster.stores[1].lease(id) }
        cluster.holds.expire(0)
        let second = try cluster.stores[1].lease(id)
        #expect(second.received == 3)
        try second.append("def")
        #expect(try second.acknowledge() == 6)
        // The process continues.
        #expect(throws: StoreError.superseded) { _ = try first.acknowledge() }
        #expect(try cluster.stores[0].record(id).offset == 6)
        first.release()
        #expect(try cluster.stores[0].record(id).offset == 6)
        _ = try second.publish(.testing(name("file")))
        #expect(try cluster.stores[1].publishedFile(name("file")).readAll() == Array("abcdef".utf8))
    }

    @Test("a store that has lost an upload ends the lease after the notification, and reads the row again")
    func loss() throws {
        let cluster = try SharedStores()
        let first = try cluster.stores[0].create(.testing())
        let id = try #require(first.id)
        let isRevoked = Monitor(false)
        first.onRevocation {
            isRevoked.withLock { $0 = true }
            isRevoked.notifyAll()
        }
        try first.append("abc")
        _ = try first.acknowledge()
        cluster.holds.expire(0)
        cluster.holds.report(0)
        #expect(isRevoked.wait(until: SystemClock.deadline(in: .seconds(10))) { $0 ? true : nil } == true)
        let second = try cluster.stores[1].lease(id)
        try second.append("def")
        _ = try second.acknowledge()
        #expect(try cluster.stores[0].record(id).offset == 6)
        first.release()
        second.release()
    }

    @Test("a target that runs when its store loses the upload has no further effect, and another store can continue")
    func lossWhileProcessing() throws {
        let cluster = try SharedStores()
        let first = try cluster.stores[0].create(.testing())
        let id = try #require(first.id)
        try first.append("abc")
        try first.beginProcessing(shouldMarkDurably: true)
        cluster.holds.expire(0)
        cluster.holds.report(0)
        // The outcome of the target is unknown, and it does not run again.
        let outcome = try cluster.stores[1].takeOver(id, principal: "alice", waitForProcessing: .zero)
        guard case .complete(let record) = outcome else {
            Issue.record("the response for an interruption was expected, not \(outcome)")
            return
        }
        #expect(record.phase == .complete(Response(status: 500)))
        #expect(throws: StoreError.superseded) { try first.complete(with: Response(status: 201)) }
        first.release()
        #expect(try cluster.stores[0].record(id).phase == .complete(Response(status: 500)))
    }

    @Test("an expired upload that another store uses is not removed")
    func expiry() throws {
        let cluster = try SharedStores()
        let first = try cluster.stores[0].create(.testing(expiresAt: 1))
        let id = try #require(first.id)
        try first.append("abc")
        _ = try first.acknowledge()
        cluster.holds.stop(0)
        let report = cluster.stores[1].sweep()
        #expect(report.expired == 0 && report.failures.isEmpty)
        #expect(try cluster.stores[0].record(id).offset == 3)
        first.release()
        #expect(cluster.stores[1].sweep().expired == 1)
        #expect(throws: StoreError.notFound) { try cluster.stores[0].record(id) }
    }

    @Test("no reported offset decreases, and no byte is lost, while clients of several stores take an upload over")
    func racing() throws {
        let cluster = try SharedStores(3)
        let content = (0..<30_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
        let creation = try cluster.stores[0].create(.testing(length: Int64(content.count), digests: [.sha256]))
        let id = try #require(creation.id)
        creation.release()
        let highest = Atomic<Int64>(0)
        let problems = Monitor<[String]>([])
        let threads = try (0..<6).map { number in
            try WorkerThread(name: "client-\(number)") {
                var generator = SeededGenerator(seed: UInt64(number))
                while highest.load(ordering: .sequentiallyConsistent) < Int64(content.count) {
                    let store = cluster.stores.randomElement(using: &generator) ?? cluster.stores[0]
                    do throws(StoreError) {
                        let before = highest.load(ordering: .sequentiallyConsistent)
                        let record = try store.record(id)
                        if record.offset < before {
                            problems.withLock { $0.append("\(record.offset) after \(before)") }
                        }
                        let outcome = try store.takeOver(id, principal: "alice", waitForProcessing: .seconds(5))
                        guard case .lease(let lease) = outcome else { continue }
                        defer { lease.release() }
                        if lease.received < before {
                            problems.withLock { $0.append("a lease at \(lease.received) after \(before)") }
                        }
                        for _ in 0..<Int.random(in: 1...10, using: &generator) {
                            let piece = Array(
                                content[Int(lease.received)...].prefix(Int.random(in: 1...900, using: &generator)))
                            guard lease.isCurrent, !piece.isEmpty else { break }
                            do { try lease.append(piece) } catch let error as StoreError { throw error } catch {}
                            if Bool.random(using: &generator) { lease.startAcknowledging() }
                        }
                        highest.max(try lease.acknowledge(), ordering: .sequentiallyConsistent)
                    } catch {
                        switch error {
                        case .superseded, .completed, .lengthExceeded, .heldElsewhere: continue
                        default: problems.withLock { $0.append(error.code) }
                        }
                    }
                }
            }
        }
        for thread in threads { thread.join() }
        #expect(problems.withLock { $0 } == [])
        let last = try cluster.stores[1].lease(id)
        _ = try last.publish(.testing(name("raced")))
        #expect(try cluster.stores[2].publishedFile(name("raced")).readAll() == content)
        last.release()
    }
}
