import PostgreSQL
import SystemCalls
import UploadStorage

// Nodes request uploads from each other, and release them.
extension ClusterNode {
    func receive(_ payload: String, in number: Int64) {
        let words = payload.split(separator: " ")
        if words.count == 2, words[0] == "probe", let probe = Int(words[1]) { return receive(probe: probe) }
        guard words.count >= 2, let id = UploadID(parsing: words[1]) else { return }
        if words[0] == "released" {
            waiting.withLock { waiting in
                if waiting.threads[id] != nil { waiting.released.insert(id) }
            }
            waiting.notifyAll()
        } else if words[0] == "request", words.count == 3, let requester = Int64(words[2]) {
            let request = session.withLock { $0.number == number ? $0.requested(id, by: requester) : .none }
            switch request {
            case .none: break
            case .endUse: observers.withLock { $0.requested }?(id)
            case .release(let release): enqueue(release)
            }
        }
    }

    func enqueue(_ release: NodeSession.Release) {
        work.withLock { $0.releases.append(release) }
        work.notifyAll()
    }

    /// Waits until another node has released an upload, at most until `deadline` (monotonic nanoseconds).
    func waitForRelease(of id: UploadID, until deadline: Int64) {
        counts.withLock { $0.holds.waiting += 1 }
        defer { counts.withLock { $0.holds.waiting -= 1 } }
        _ = waiting.wait(until: deadline) { $0.released.remove(id) }
    }

    /// Runs `body`, which acquires an upload, and may wait for its release.
    func acquiring<Result>(
        _ id: UploadID, _ body: () throws(StoreError) -> Result
    ) throws(StoreError) -> Result {
        session.withLock { $0.beginAcquiring(id) }
        waiting.withLock { $0.threads[id, default: 0] += 1 }
        defer {
            session.withLock { $0.endAcquiring(id) }
            waiting.withLock { waiting in
                let count = (waiting.threads[id] ?? 1) - 1
                waiting.threads[id] = count > 0 ? count : nil
                if count == 0 { waiting.released.remove(id) }
            }
        }
        return try body()
    }

    /// Releases uploads on a thread of its own, because other nodes wait for them.
    func keepReleasing() {
        while true {
            let releases = work.waitForever { work -> [NodeSession.Release]? in
                if work.isClosing { return [] }
                if work.releases.isEmpty { return nil }
                defer { work.releases = [] }
                return work.releases
            }
            if releases.isEmpty { return }
            release(releases)
        }
    }

    private func release(_ releases: [NodeSession.Release]) {
        guard let number = session.withLock({ $0.number }) else { return }
        var fences: [UploadID: Int64] = [:]
        for release in releases { fences[release.id] = release.fence }
        let unknown = releases.filter { $0.fence == nil }.map(\.id)
        do throws(DatabaseError) {
            if !unknown.isEmpty {
                let rows = try database.run(
                    DatabaseStatement(
                        ClusterSQL.selectFences, [.integer(number), .byteArrays(unknown.map(\.bytes))]))
                for row in 0..<rows.count {
                    // The fence was read before this check, so an acquisition that begins later has a higher fence.
                    guard let id = rows.bytes(row, 0).flatMap(UploadID.init(bytes:)),
                        session.withLock({ $0.isUnknown(id) })
                    else { continue }
                    fences[id] = rows.integer(row, 1)
                }
            }
            let known = fences.map { ($0.key.bytes, $0.value) }
            var statements = [
                DatabaseStatement(ClusterSQL.commitAtOnce),
                DatabaseStatement(
                    ClusterSQL.release,
                    [.integer(number), .byteArrays(known.map(\.0)), .integers(known.map(\.1))]),
            ]
            for release in releases {
                for requester in release.requesters.sorted() {
                    statements.append(Self.notification("released \(release.id.text)", to: requester))
                }
            }
            _ = try database.transaction(statements)
            counts.withLock {
                $0.holds.releasedOnRequest += releases.count { !$0.requesters.isEmpty && $0.fence != nil }
            }
        } catch {
            // The other node requests the release again. This node then releases the upload even if it does not know the
            // hold any more.
        }
    }
}
