import HTTPSemantics
import ResumableUpload
import SystemCalls
import TestSupport
import Testing

@testable import ClusterStorage
@testable import UploadStorage

/// Tests the removal of uploads that another node acquires at the same time.
@Suite(.enabled(if: PostgreSQLCluster.isInstalled, "\(PostgreSQLCluster.requirement)"))
struct OvertakenRemovalTests {
    /// The action of the other node before the removal is committed.
    enum Overtaking: CaseIterable {
        case holds, released, completed
    }

    enum Remover: CaseIterable {
        case cancellation, sweep
    }

    @Test(
        "a removal that another node has overtaken is refused, and the upload continues there",
        arguments: Overtaking.allCases, Remover.allCases)
    func overtaken(overtaking: Overtaking, remover: Remover) throws {
        let fixture = try ClusterFixture()
        let (first, second) = (try fixture.node("a"), try fixture.node("b"))
        let store = try fixture.store(over: first)
        let lease = try store.create(
            NewUpload(principal: "alice", method: .put, target: "/files/f", expiresAt: 1))
        let id = try #require(lease.id)
        let failures = Monitor<[any Error]>([])
        // Called after the removal has begun, and before it is committed.
        lease.onRevocation {
            do {
                // Frees the upload, as if the session of its holder had ended.
                try fixture.run("UPDATE onward.upload SET holder = NULL")
                let held = try #require(try second.acquireNow(id))
                switch overtaking {
                case .holds: break
                case .released:
                    try fixture.run("UPDATE onward.upload SET holder = NULL")
                case .completed:
                    try second.commit(
                        .complete(
                            CatalogChange.Completion(
                                id: id, epoch: held.row.epoch, offset: 0, response: Response(status: 201),
                                expiresAt: 1 << 40, file: nil, upload: held.row.upload)))
                }
            } catch { failures.withLock { $0.append(error) } }
        }
        switch remover {
        case .cancellation:
            #expect(throws: StoreError.heldElsewhere) { try store.cancel(id, principal: "alice") }
        case .sweep:
            let report = store.sweep()
            #expect(report.expired == 0 && report.unfinished == 0)
            #expect(report.failures == [])
        }
        #expect(failures.withLock { $0.isEmpty })
        let row = try #require(try second.row(id))
        #expect(row.isUnfinished == (overtaking != .completed))
        lease.release()
    }
}
