import Digests
import HTTPSemantics
import ResumableUpload
import TestSupport
import Testing

@testable import UploadStorage

/// Each test runs with every pair of catalog and blob area.
@Suite struct UploadStoreTests {
    @Test(
        "OFF-01: the offset is the count of acknowledged bytes, before and after a restart",
        arguments: StoreKind.allCases)
    func acknowledging(_ kind: StoreKind) throws {
        let fixture = try StoreFixture(kind)
        let lease = try fixture.store.create(.testing(length: 10))
        let id = try #require(lease.id)
        try lease.append("01234")
        #expect(lease.received == 5)
        #expect(lease.acknowledged == 0)
        #expect(try fixture.store.record(id).offset == 0)
        #expect(try lease.acknowledge() == 5)
        #expect(lease.acknowledged == 5)
        #expect(try fixture.store.record(id).offset == 5)
        try lease.append("56")
        lease.release()
        #expect(try fixture.store.record(id).offset == 7)
        try fixture.reopen()
        let record = try fixture.store.record(id)
        #expect(record.offset == 7 && record.length == 10 && record.phase == .receiving)
        #expect(record.upload == .testing(length: 10))
        let next = try fixture.store.lease(id)
        #expect(next.received == 7 && next.acknowledged == 7)
        #expect(try next.readAll() == Array("0123456".utf8))
    }

    @Test(
        "CON-02: a take-over ends the lease, keeps its bytes and calls its revocation handler once",
        arguments: StoreKind.allCases)
    func takingOver(_ kind: StoreKind) throws {
        let fixture = try StoreFixture(kind)
        let first = try fixture.store.create(.testing())
        let id = try #require(first.id)
        let revocations = Counter()
        first.onRevocation { revocations.next() }
        try first.append("abc")
        let second = try fixture.store.lease(id)
        #expect(revocations.value == 1 && !first.isCurrent && second.isCurrent)
        #expect(second.received == 3)
        #expect(throws: StoreError.superseded) { try first.append("XXX") }
        #expect(throws: StoreError.superseded) { try first.acknowledge() }
        #expect(throws: StoreError.superseded) { try first.complete(with: Response(status: 201)) }
        first.onRevocation { revocations.next() }
        #expect(revocations.value == 2)
        first.release()
        #expect(second.isCurrent)
        try second.append("def")
        #expect(try second.acknowledge() == 6)
        #expect(try second.readAll() == Array("abcdef".utf8))
    }

    @Test("an upload does not exist for other principals", arguments: StoreKind.allCases)
    func principals(_ kind: StoreKind) throws {
        let fixture = try StoreFixture(kind)
        let lease = try fixture.store.create(.testing())
        let id = try #require(lease.id)
        #expect(throws: StoreError.notFound) {
            try fixture.store.takeOver(id, principal: "mallory", waitForProcessing: .zero)
        }
        #expect(throws: StoreError.notFound) { try fixture.store.cancel(id, principal: "mallory") }
        #expect(lease.isCurrent)
        #expect(throws: StoreError.notFound) {
            try fixture.store.takeOver(UploadID(), principal: "alice", waitForProcessing: .zero)
        }
        #expect(throws: StoreError.notFound) { try fixture.store.record(UploadID()) }
    }

    @Test(
        "CAN-02: cancellation removes an upload with its bytes and quota, and the revocation handler is called",
        arguments: StoreKind.allCases)
    func cancelling(_ kind: StoreKind) throws {
        let fixture = try StoreFixture(kind) { $0.quotaPerPrincipal = 100 }
        let lease = try fixture.store.create(.testing(length: 80))
        let id = try #require(lease.id)
        let revocations = Counter()
        lease.onRevocation { revocations.next() }
        try lease.append("abc")
        #expect(throws: StoreError.quotaExceeded(limit: 100)) { try fixture.store.create(.testing(length: 21)) }
        try fixture.store.cancel(id, principal: "alice")
        #expect(revocations.value == 1)
        #expect(throws: StoreError.superseded) { try lease.append("d") }
        #expect(throws: StoreError.notFound) { try fixture.store.record(id) }
        #expect(throws: StoreError.notFound) { try fixture.store.cancel(id, principal: "alice") }
        #expect(fixture.usage(of: "alice") == Usage())
        #expect(try fixture.blobCount() == 0)
        lease.release()
        _ = try fixture.store.create(.testing(length: 100))
    }

    @Test("a length is set once, recorded and never changed", arguments: StoreKind.allCases)
    func lengths(_ kind: StoreKind) throws {
        let fixture = try StoreFixture(kind)
        let lease = try fixture.store.create(.testing())
        let id = try #require(lease.id)
        try lease.append("abcd")
        #expect(throws: StoreError.invalidState("the length contradicts an earlier length or the received bytes")) {
            try lease.setLength(3)
        }
        try lease.setLength(6)
        try lease.setLength(6)
        #expect(try lease.acknowledge() == 4)
        #expect(throws: StoreError.lengthExceeded(length: 6)) { try lease.append("efg") }
        #expect(lease.received == 4)
        try lease.append("ef")
        lease.release()
        try fixture.reopen()
        #expect(try fixture.store.record(id).length == 6)
        #expect(fixture.usage(of: "alice").reservedBytes == 6)
    }

    @Test("APP-24: an invalid upload stays invalid, and its bytes are deleted", arguments: StoreKind.allCases)
    func invalidating(_ kind: StoreKind) throws {
        let fixture = try StoreFixture(kind)
        let lease = try fixture.store.create(.testing(length: 4))
        let id = try #require(lease.id)
        try lease.append("abcd")
        try lease.invalidate(reason: "overrun")
        #expect(throws: StoreError.gone(reason: "overrun")) { try lease.append("e") }
        #expect(fixture.usage(of: "alice") == Usage())
        #expect(try fixture.blobCount() == 0)
        lease.release()
        for _ in 0..<2 {
            #expect(throws: StoreError.gone(reason: "overrun")) {
                try fixture.store.takeOver(id, principal: "alice", waitForProcessing: .zero)
            }
            #expect(try fixture.store.record(id).phase == .invalid(reason: "overrun"))
            try fixture.reopen()
        }
    }

    @Test("DIG-07: staged bytes are added to the offset only after they are committed", arguments: StoreKind.allCases)
    func staging(_ kind: StoreKind) throws {
        let fixture = try StoreFixture(kind)
        let lease = try fixture.store.create(.testing(digests: [.sha256]))
        let id = try #require(lease.id)
        try lease.append("abc")
        try lease.beginStaging(digests: [.sha256])
        try lease.append("wrong")
        #expect(lease.received == 3)
        #expect(try lease.acknowledge() == 3)
        #expect(try lease.stagedDigest(.sha256) == digest("wrong"))
        #expect(try lease.stagedDigest(.sha512) == digest("wrong", .sha512))
        lease.discardStaged()
        try lease.beginStaging()
        try lease.append("def")
        #expect(try lease.stagedDigest(.sha256) == digest("def"))
        try lease.commitStaged()
        #expect(try lease.acknowledge() == 6)
        #expect(try lease.representationDigest(.sha256) == digest("abcdef"))
        try lease.beginStaging()
        try lease.append("lost")
        #expect(throws: StoreError.self) { try lease.beginProcessing(shouldMarkDurably: false) }
        let next = try fixture.store.lease(id)
        #expect(next.received == 6)
        try next.append("g")
        #expect(try next.readAll() == Array("abcdefg".utf8))
        #expect(try next.representationDigest(.sha256) == digest("abcdefg"))
        try next.beginStaging()
        try next.append("lost, too")
        next.release()
        try fixture.reopen()
        #expect(try fixture.store.lease(id).readAll() == Array("abcdefg".utf8))
    }

    @Test("a digest continues after a restart from its stored state", arguments: StoreKind.allCases)
    func digestStates(_ kind: StoreKind) throws {
        let fixture = try StoreFixture(kind)
        var bytes: [UInt8] = []
        let lease = try fixture.store.create(.testing(digests: [.sha256, .sha512]))
        let id = try #require(lease.id)
        let piece = [UInt8](repeating: 7, count: 300_000)
        for _ in 0..<10 {
            try lease.append(piece)
            bytes += piece
        }
        #expect(try lease.representationDigest(.sha512) == digest(bytes, .sha512))
        _ = try lease.acknowledge()
        lease.release()
        try fixture.reopen()
        let row = try #require(try fixture.store.catalog.row(id))
        #expect(row.digestStates.count == 2)
        #expect(row.digestStates.allSatisfy { RunningDigest(encodedState: $0)?.count == 3_000_000 })
        let next = try fixture.store.lease(id)
        try next.append("end")
        #expect(try next.representationDigest(.sha256) == digest(bytes + Array("end".utf8)))
    }

    @Test("LIM-19: expired uploads are refused, and then removed with their bytes", arguments: StoreKind.allCases)
    func expiry(_ kind: StoreKind) throws {
        let fixture = try StoreFixture(kind) { $0.keepCompleted = .seconds(50) }
        let expiring = try fixture.store.create(.testing(expiresAt: 1_000_100))
        let complete = try fixture.store.create(.testing())
        let staying = try fixture.store.create(.testing())
        let revocations = Counter()
        expiring.onRevocation { revocations.next() }
        try expiring.append("abc")
        try complete.complete(with: Response(status: 200))
        let ids = [try #require(expiring.id), try #require(complete.id), try #require(staying.id)]
        #expect(fixture.store.sweep() == SweepReport())
        fixture.advance(100)
        #expect(throws: StoreError.gone(reason: "it has expired")) {
            try fixture.store.takeOver(ids[0], principal: "alice", waitForProcessing: .zero)
        }
        #expect(fixture.store.sweep().expired == 2)
        #expect(revocations.value == 1)
        #expect(throws: StoreError.superseded) { try expiring.append("d") }
        #expect(throws: StoreError.notFound) { try fixture.store.record(ids[0]) }
        #expect(throws: StoreError.notFound) { try fixture.store.record(ids[1]) }
        #expect(try fixture.store.record(ids[2]).phase == .receiving)
        #expect(fixture.usage(of: "alice").uploads == 1)
        #expect(try fixture.blobCount() == (kind == .cluster ? 0 : 1))
    }

    @Test("closing a store revokes its leases, and a closed store accepts no content", arguments: StoreKind.allCases)
    func closing(_ kind: StoreKind) throws {
        let fixture = try StoreFixture(kind)
        let lease = try fixture.store.create(.testing())
        try lease.append("abc")
        fixture.store.close()
        #expect(throws: StoreError.superseded) { try lease.append("d") }
        #expect(throws: StoreError.superseded) { try lease.acknowledge() }
        #expect(throws: StoreError.superseded) { try fixture.store.create(.testing()) }
        #expect(!fixture.store.health().isReady)
        lease.release()
    }

    @Test("an acknowledgment in the background increases the offset", arguments: StoreKind.allCases)
    func background(_ kind: StoreKind) async throws {
        let fixture = try StoreFixture(kind)
        let lease = try fixture.store.create(.testing())
        try lease.append("abc")
        lease.startAcknowledging()
        lease.startAcknowledging()
        #expect(try await happens { lease.acknowledged == 3 })
    }

    @Test(
        "small acknowledgments in the background share transactions, with and without rows",
        arguments: StoreKind.embedded)
    func gathered(_ kind: StoreKind) async throws {
        let fixture = try StoreFixture(kind)
        let leases = try (0..<60).map { _ in try fixture.store.create(.testing(), shouldRecordAtOnce: false) }
        // One of them is canceled while it waits.
        let canceled = try #require(leases[7].id)
        for (round, text) in ["abc", "de"].enumerated() {
            let before = fixture.store.catalog.statistics
            for lease in leases where lease.isCurrent { try lease.append(text) }
            for lease in leases { lease.startAcknowledging() }
            if round == 0 { try fixture.store.cancel(canceled, principal: "alice") }
            let count = [3, 5][round]
            #expect(try await happens { leases.allSatisfy { !$0.isCurrent || $0.acknowledged == count } })
            let after = fixture.store.catalog.statistics
            #expect(after.changes - before.changes >= 59)
            // The catalog in memory makes each change on its own.
            let transactions = after.transactions - before.transactions
            #expect(kind == .memory || transactions <= 30, "\(transactions)")
        }
        #expect(leases.filter(\.isCurrent).count == 59)
        let ids = leases.compactMap(\.id)
        try fixture.reopen()
        for id in ids where id != canceled { #expect(try fixture.store.record(id).offset == 5) }
        #expect(throws: StoreError.notFound) { try fixture.store.record(canceled) }
    }
}
