import Foundation
import ResumableUpload
import Synchronization
import SystemCalls
import TestSupport
import Testing

@testable import UploadStorage

@Suite struct TakeOverRaceTests {
    @Test(
        "CON-02 CON-06: every byte is stored at its offset while several requests take over an upload",
        arguments: StoreKind.embedded)
    func racing(_ kind: StoreKind) throws {
        let fixture = try StoreFixture(kind)
        let content = (0..<60_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
        let creation = try fixture.store.create(.testing(length: Int64(content.count), digests: [.sha256]))
        let id = try #require(creation.id)
        let highest = Atomic<Int64>(0)
        let problems = Monitor<[String]>([])
        let store = fixture.store
        let threads = try (0..<6).map { number in
            try WorkerThread(name: "client-\(number)") {
                var generator = SeededGenerator(seed: UInt64(number))
                while true {
                    do {
                        let reportedOffset = highest.load(ordering: .sequentiallyConsistent)
                        guard
                            case .lease(let lease) = try store.takeOver(
                                id, principal: "alice", waitForProcessing: .seconds(5))
                        else { return }
                        defer { lease.release() }
                        let start = lease.received
                        if start < reportedOffset {
                            problems.withLock { $0.append("\(start) after \(reportedOffset)") }
                        }
                        for _ in 0..<Int.random(in: 1...20, using: &generator) {
                            let offset = Int(lease.received)
                            // Another thread may take over the upload between the check of `isCurrent` and the append.
                            // The append must detect this take-over.
                            let piece = Array(content[offset...].prefix(Int.random(in: 1...900, using: &generator)))
                            guard lease.isCurrent else { break }
                            if piece.isEmpty { break }
                            try lease.append(piece)
                            if Bool.random(using: &generator) { lease.startAcknowledging() }
                        }
                        let acknowledged = try lease.acknowledge()
                        highest.max(acknowledged, ordering: .sequentiallyConsistent)
                        if acknowledged == Int64(content.count) {
                            _ = try lease.publish(.testing(try name("raced")))
                            return
                        }
                    } catch let error as StoreError {
                        switch error {
                        case .superseded, .completed, .lengthExceeded: continue
                        default: problems.withLock { $0.append(error.code) }
                        }
                    } catch {
                        problems.withLock { $0.append("\(error)") }
                        return
                    }
                }
            }
        }
        for thread in threads { thread.join() }
        #expect(problems.withLock { $0 } == [])
        #expect(try store.publishedFile(name("raced")).readAll() == content)
        creation.release()
    }

    @Test(
        "CON-02: waiting requests get the lease of an upload in the order of their arrival",
        arguments: StoreKind.embedded)
    func order(_ kind: StoreKind) throws {
        let fixture = try StoreFixture(kind)
        let store = fixture.store
        let creation = try store.create(.testing())
        let id = try #require(creation.id)
        @Sendable func takeOver() throws -> UploadLease? {
            guard
                case .lease(let lease) = try store.takeOver(
                    id, principal: "alice", waitForProcessing: .zero, exclusive: true)
            else { return nil }
            return lease
        }
        let first = try #require(try takeOver())
        #expect(!creation.isCurrent)
        let order = Monitor<[Int]>([])
        let threads = try (0..<5).map { number in
            let thread = try WorkerThread(name: "waits") {
                let lease = try? takeOver()
                order.withLock { $0.append(number) }
                // An exclusive lease is not taken over.
                _ = try? lease?.append("x")
                if (try? lease?.acknowledge()) != Int64(number + 1) { order.withLock { $0.append(-1) } }
                lease?.release()
            }
            // The next thread starts after this thread has begun to wait.
            let upload = try #require(store.registry.current(id))
            let isWaiting: Bool? = pollUntil(within: .seconds(60)) {
                upload.monitor.withLock { $0.machine.waiting.count } == number + 1 ? true : nil
            }
            try #require(isWaiting == true)
            return thread
        }
        #expect(first.isCurrent && order.withLock { $0 } == [])
        first.release()
        for thread in threads { thread.join() }
        #expect(order.withLock { $0 } == [0, 1, 2, 3, 4])
        // A lease with a revocation handler can be taken over.
        let sending = try #require(try takeOver())
        let revocations = Counter()
        sending.onRevocation { revocations.next() }
        let last = try #require(try takeOver())
        #expect(revocations.value == 1 && !sending.isCurrent && last.isCurrent)
    }

    @Test(
        "concurrent acknowledgments, take-overs, cancellations, sweeps and a close cause no deadlock",
        arguments: StoreKind.embedded, [1, 2, 3])
    func concurrency(_ kind: StoreKind, _ seed: UInt64) throws {
        let fixture = try StoreFixture(kind) { $0.keepCompleted = .seconds(0) }
        let store = fixture.store
        let ids = Monitor<[UploadID]>([])
        let threads = try (0..<5).map { number in
            try WorkerThread(name: "client-\(number)") {
                var generator = SeededGenerator(seed: seed * 100 + UInt64(number))
                var leases: [UploadLease] = []
                for _ in 0..<150 {
                    do {
                        switch Int.random(in: 0..<9, using: &generator) {
                        case 0:
                            let lease = try store.create(.testing(digests: [.sha256]))
                            if let id = lease.id { ids.withLock { $0.append(id) } }
                            leases.append(lease)
                        case 1, 2:
                            guard let id = ids.withLock({ $0.randomElement(using: &generator) }) else { continue }
                            if case .lease(let lease) = try store.takeOver(
                                id, principal: "alice", waitForProcessing: .milliseconds(2))
                            {
                                leases.append(lease)
                            }
                        case 3, 4: try leases.last?.append([UInt8](repeating: 7, count: 100))
                        case 5: _ = try leases.last?.acknowledge()
                        case 6: leases.last?.startAcknowledging()
                        case 7:
                            if let lease = leases.last { _ = try lease.publish(.testing(try name("f\(number)"))) }
                        default:
                            if Bool.random(using: &generator) {
                                leases.popLast()?.release()
                            } else if let id = ids.withLock({ $0.randomElement(using: &generator) }) {
                                try store.cancel(id, principal: "alice")
                            } else {
                                _ = store.sweep()
                            }
                        }
                    } catch {
                        continue
                    }
                }
            }
        }
        for thread in threads { thread.join() }
        try fixture.reopen()
        var expected = Usage()
        for row in try fixture.store.catalog.unfinishedRows() {
            expected.uploads += 1
            expected.reservedBytes += row.reservedBytes
        }
        expected.publishedBytes = try fixture.store.catalog.publishedBytes(of: "alice")
        #expect(fixture.usage(of: "alice") == expected)
    }
}
