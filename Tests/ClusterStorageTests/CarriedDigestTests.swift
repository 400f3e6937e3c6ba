import Digests
import ResumableUpload
import SystemCalls
import TestSupport
import Testing

@testable import ClusterStorage
@testable import UploadStorage

@Suite(.enabled(if: PostgreSQLCluster.isInstalled, "\(PostgreSQLCluster.requirement)"))
struct CarriedDigestTests {
    @Test(
        "a node that continues an upload does not read the bytes that another node has digested, unless their state is lost",
        arguments: [false, true])
    func digest(isStateLost: Bool) throws {
        let fixture = try ClusterFixture()
        let limits = PieceLimits(maxSize: 64 << 10, maxInlineSize: 1 << 10, minMemory: 32 << 10, memory: 1 << 20)
        let stores = try (0..<2).map { try fixture.store(over: fixture.node("node\($0)"), limits: limits) }
        let bytes = content(2_010_000)
        let first = try stores[0].create(
            NewUpload(
                principal: "alice", method: .put, target: "/files/x", length: Int64(bytes.count), digests: [.sha256]))
        let id = try #require(first.id)
        try append(bytes[..<2_000_000], to: first)
        // From now on the digest of these bytes is in memory, and is recorded with the next offset.
        _ = try first.representationDigest(.sha256)
        try append(bytes[2_000_000..<2_000_100], to: first)
        _ = try first.acknowledge()
        first.release()
        if isStateLost {
            try fixture.run("UPDATE onward.upload SET digests = $1", [.bytes(DigestStates([]).savedBytes)])
        }

        let before = fixture.objects.operations.count
        guard case .lease(let second) = try stores[1].takeOver(id, principal: "alice", waitForProcessing: .zero) else {
            Issue.record("the upload cannot be continued")
            return
        }
        try append(bytes[Int(second.received)...], to: second)
        #expect(try second.representationDigest(.sha256) == hash(bytes))
        second.release()
        let read = fixture.objects.operations[before...].reduce(0) { sum, operation in
            if case .get(_, let range) = operation { sum + range.count } else { sum }
        }
        if isStateLost { #expect(read >= 1_900_000) } else { #expect(read <= 2 * limits.maxSize) }
    }

    @Test("an upload whose digest is slow waits for it while the bytes are in memory, and reads none of them again")
    func slowDigest() throws {
        let fixture = try ClusterFixture()
        let store = try fixture.store(over: fixture.node())
        let isDone = Monitor(false)
        defer {
            withExtendedLifetime(fixture) {
                isDone.withLock { $0 = true }
                isDone.notifyAll()
            }
        }
        // The threads that compute digests have other work.
        for _ in 0..<8 { store.context.digesting.enqueue { _ = isDone.waitForever { $0 ? true : nil } } }
        let bytes = content(40 << 20)
        let lease = try store.create(
            NewUpload(
                principal: "alice", method: .put, target: "/files/x", length: Int64(bytes.count), digests: [.sha256]))
        for start in stride(from: 0, to: bytes.count, by: 1 << 20) {
            try append(bytes[start..<start + (1 << 20)], to: lease)
        }
        #expect(try lease.representationDigest(.sha256) == hash(bytes))
        let reads = fixture.objects.operations.filter { operation in
            if case .get(let key, _) = operation { key.hasPrefix("data/") } else { false }
        }
        #expect(reads == [])
        lease.release()
    }

    private func append(_ bytes: ArraySlice<UInt8>, to lease: UploadLease) throws {
        try bytes.withUnsafeBytes { try lease.append($0) }
    }

    private func hash(_ bytes: [UInt8]) -> [UInt8] {
        var digest = RunningDigest(.sha256)
        bytes.withUnsafeBytes { digest.update($0) }
        return digest.finalized()
    }
}
