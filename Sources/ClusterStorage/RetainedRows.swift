import ObjectStorage
import PostgreSQL
import SystemCalls
import UploadStorage

/// The retained requests of a cluster.
///
/// A process that uses a request claims it in the database, and extends the claim until it releases the request. After the
/// process was killed, the claim ends by itself.
package struct RetainedRows: RetainedRequests {
    private let cluster: ClusterInspection
    private let storage: PieceStorage

    package init(_ cluster: ClusterInspection) throws(StoreError) {
        self.cluster = cluster
        storage = try cluster.pieceStorage()
    }

    package func keys() throws(StoreError) -> [String] {
        let rows = try cluster.rows(ClusterSQL.retainedKeys)
        return (0..<rows.count).compactMap { rows.text($0, 0) }
    }

    package func description(_ key: String) throws(StoreError) -> [UInt8]? {
        let rows = try cluster.rows(ClusterSQL.selectRetained, [.text(key)])
        return rows.count == 0 ? nil : rows.bytes(0, 1)
    }

    package func request(_ key: String) throws(StoreError) -> RetainedRequest? {
        let claim = try Claim(of: key, in: cluster)
        // Another process may have removed the request before it ended its claim.
        let rows = try cluster.rows(ClusterSQL.selectRetained, [.text(key)])
        guard rows.count > 0, let blob = rows.text(0, 0), let description = rows.bytes(0, 1) else { return nil }
        let size = try cluster.rows(ClusterSQL.sizeOfBlob, [.text(blob)]).integer(0, 0) ?? 0
        let content = RecordedPieces(of: blob, size: size, storage: storage)
        return RetainedRequest(
            description: description, content: ClaimedContent(pieces: content, claim: claim), length: size)
    }

    package func share(_ key: String, in path: String) throws(StoreError) -> SharedFile {
        throw .unusableHandover("the content is not on this machine, so the application cannot get its path")
    }

    package func remove(_ key: String) throws(StoreError) {
        let rows = try cluster.rows(ClusterSQL.selectRetained, [.text(key)])
        guard rows.count > 0, let blob = rows.text(0, 0) else { return }
        _ = try cluster.transaction([
            DatabaseStatement(ClusterSQL.removeRetained, [.text(key)]),
            DatabaseStatement(ClusterSQL.dropPieces, [.text(blob)]),
        ])
    }

    /// Content that no other process uses as long as this value exists.
    private struct ClaimedContent: PublishedContent {
        let pieces: RecordedPieces
        let claim: Claim

        func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(Errno) -> Int {
            try pieces.read(into: buffer, at: offset)
        }

        func duplicateForSending() throws(Errno) -> Int32? { nil }
    }

    /// The claim of this process on a request.
    private final class Claim: Sendable {
        /// The milliseconds for which a claim is valid if it is not extended. The database can be unavailable for minutes.
        private static let validity: Int64 = 600_000
        /// The time after which a claim is extended.
        private static let extensionPause = Duration.seconds(30)

        private let cluster: ClusterInspection
        private let parameters: [DatabaseValue]
        private let isEnded = Monitor(false)
        private let thread = Monitor<WorkerThread?>(nil)

        /// - Throws: ``StoreError/inUse`` if another process has claimed the request.
        init(of key: String, in cluster: ClusterInspection) throws(StoreError) {
            self.cluster = cluster
            parameters = [.text("resend \(key)"), .text(UploadID().text)]
            guard try cluster.rows(ClusterSQL.claimTask, parameters + [.integer(Self.validity)]).count > 0 else {
                throw .inUse
            }
            do throws(Errno) {
                let extending = try WorkerThread(name: "claim") { [cluster, parameters, isEnded] in
                    while isEnded.wait(until: SystemClock.deadline(in: Self.extensionPause), { $0 ? () : nil }) == nil {
                        _ = try? cluster.rows(ClusterSQL.extendClaim, parameters + [.integer(Self.validity)])
                    }
                }
                thread.withLock { $0 = extending }
            } catch { throw .cannotStartThread(error) }
        }

        deinit {
            isEnded.withLock { $0 = true }
            isEnded.notifyAll()
            thread.withLock { $0.take() }?.join()
            _ = try? cluster.rows(ClusterSQL.endClaim, parameters)
        }
    }
}
