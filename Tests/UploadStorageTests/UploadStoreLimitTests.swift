import Digests
import HTTPSemantics
import ResumableUpload
import TestSupport
import Testing

@testable import UploadStorage

/// The limits of a principal, and the bytes that count.
@Suite struct UploadStoreLimitTests {
    @Test("an upload beyond the limit is refused before its client can get a URL, even if its row follows later")
    func limitOfLateRows() throws {
        for kind in StoreKind.allCases {
            let fixture = try StoreFixture(kind) { $0.maxUploadsPerPrincipal = 1 }
            let first = try fixture.store.create(.testing())
            #expect(throws: StoreError.tooManyUploads(limit: 1), "\(kind)") {
                try fixture.store.create(.testing(), shouldRecordAtOnce: false)
            }
            first.release()
        }
    }

    @Test("a principal has limits for uploads and bytes", arguments: StoreKind.embedded)
    func quotas(_ kind: StoreKind) throws {
        let fixture = try StoreFixture(kind) {
            $0.maxUploadsPerPrincipal = 2
            $0.quotaPerPrincipal = 3 << 20
        }
        let first = try fixture.store.create(.testing(length: 1 << 20))
        let second = try fixture.store.create(.testing())
        #expect(throws: StoreError.tooManyUploads(limit: 2)) { try fixture.store.create(.testing()) }
        _ = try fixture.store.create(.testing(principal: "bob", length: 3 << 20))
        let piece = [UInt8](repeating: 1, count: 1 << 19)
        for _ in 0..<4 { try second.append(piece) }
        #expect(throws: StoreError.quotaExceeded(limit: 3 << 20)) { try second.append([1]) }
        #expect(second.received == 2 << 20)
        #expect(fixture.store.usage(of: "alice") == Usage(uploads: 2, reservedBytes: 3 << 20))
        let id = try #require(second.id)
        second.release()
        first.release()
        try fixture.reopen {
            $0.maxUploadsPerPrincipal = 2
            $0.quotaPerPrincipal = 3 << 20
        }
        #expect(fixture.store.usage(of: "alice") == Usage(uploads: 2, reservedBytes: 3 << 20))
        let again = try fixture.store.lease(id)
        _ = try again.publish(.testing(name("two")))
        again.release()
        #expect(
            fixture.store.usage(of: "alice") == Usage(uploads: 1, reservedBytes: 1 << 20, publishedBytes: 2 << 20))
        #expect(throws: StoreError.quotaExceeded(limit: 3 << 20)) { try fixture.store.create(.testing(length: 1)) }
        try fixture.store.remove(name("two"))
        #expect(fixture.store.usage(of: "alice") == Usage(uploads: 1, reservedBytes: 1 << 20))
    }

    @Test("an upload of unknown length stops at the quota while it grows, and continues when there is room")
    func growth() throws {
        for kind in StoreKind.allCases {
            let fixture = try StoreFixture(kind) { $0.quotaPerPrincipal = 3 << 20 }
            let other = try fixture.store.create(.testing(length: 1 << 20))
            let lease = try fixture.store.create(.testing())
            let piece = [UInt8](repeating: 1, count: 100_000)
            for _ in 0..<20 { try lease.append(piece) }
            #expect(throws: StoreError.quotaExceeded(limit: 3 << 20), "\(kind)") { try lease.append(piece) }
            #expect(((2 << 20) - 32 << 10...2 << 20).contains(lease.received), "\(kind): \(lease.received)")
            #expect(throws: StoreError.quotaExceeded(limit: 3 << 20), "\(kind)") { try lease.setLength((2 << 20) + 1) }
            other.release()
            try fixture.store.cancel(try #require(other.id), principal: "alice")
            try lease.append(piece)
            let received = lease.received
            try lease.setLength(received)
            #expect(try lease.acknowledge() == received, "\(kind)")
            lease.release()
        }
    }

    @Test("bytes reserved in advance are released when no lease writes", arguments: StoreKind.embedded)
    func surplus(_ kind: StoreKind) throws {
        let fixture = try StoreFixture(kind)
        let lease = try fixture.store.create(.testing())
        let id = try #require(lease.id)
        for _ in 0..<3 {
            let lease = try fixture.store.lease(id)
            try lease.append("abc")
            #expect(fixture.store.usage(of: "alice").reservedBytes >= 1 << 20)
            lease.release()
            withExtendedLifetime(lease) {}
        }
        lease.release()
        #expect(fixture.store.usage(of: "alice").reservedBytes == 9)
    }

    @Test("the bytes of a plain upload are deleted unless they are published", arguments: StoreKind.allCases)
    func transientBytes(_ kind: StoreKind) throws {
        let fixture = try StoreFixture(kind)
        let dropped = try fixture.store.createTransient(principal: "alice", length: 3)
        #expect(dropped.id == nil)
        try dropped.append("abc")
        #expect(throws: StoreError.notFound) { try fixture.store.record(dropped.record.id) }
        #expect(throws: StoreError.notFound) {
            try fixture.store.takeOver(dropped.record.id, principal: "alice", waitForProcessing: .zero)
        }
        #expect(fixture.store.sweep() == SweepReport())
        #expect(dropped.received == 3)
        dropped.release()
        #expect(try fixture.blobCount() == 0)
        let kept = try fixture.store.createTransient(principal: "alice", length: nil, digests: [.sha256])
        try kept.append("abcdef")
        #expect(try kept.representationDigest(.sha256) == digest("abcdef"))
        #expect(try kept.publish(.testing(name("kept"))).status == 201)
        kept.release()
        #expect(try fixture.store.publishedFile(name("kept")).readAll() == Array("abcdef".utf8))
        #expect(fixture.usage(of: "alice") == Usage(publishedBytes: 6))
        #expect(try fixture.blobCount() == 0)
    }
}
