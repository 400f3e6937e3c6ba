import HTTPSemantics
import ObjectStorage
import PostgreSQL
import SystemCalls
import UploadStorage

/// A blob area that several nodes share: the bytes are objects of an object storage, and their names are in a database.
///
/// The catalog of the same database publishes files: see ``CatalogChange/Naming``.
package final class ObjectBlobArea: BlobArea {
    let node: ClusterNode
    let storage: PieceStorage
    /// Removes objects and pieces that nothing needs. ``close()`` closes it.
    let collector: PieceCollector

    /// - Parameters:
    ///   - node: the node that the catalog of the same database uses and closes.
    ///   - ledger: the ledger from which that catalog records pieces.
    package convenience init(
        node: ClusterNode, objects: any ObjectStore, ledger: PieceLedger
    ) throws(StoreError) {
        try self.init(node: node, objects: objects, ledger: ledger, limits: PieceLimits(), writers: 8)
    }

    /// - Parameter writers: the number of threads that store objects.
    init(
        node: ClusterNode, objects: any ObjectStore, ledger: PieceLedger, limits: PieceLimits, writers: Int
    ) throws(StoreError) {
        self.node = node
        collector = PieceCollector(database: node.database, objects: objects, clock: { [node] in node.clock })
        do throws(Errno) {
            storage = try PieceStorage(
                objects: objects, database: node.database, ledger: ledger, limits: limits, writers: writers
            ) { [weak node, collector] () throws(StoreError) -> Int64 in
                // Objects in the storage of another database would be removed as orphans there.
                try collector.requireOwnStorageOnce(until: SystemClock.deadline(in: limits.claimWait))
                guard let node else { throw .superseded }
                return try node.currentSession()
            }
        } catch { throw .cannotStartThread(error) }
    }

    /// The largest number of bytes that the buffers have had at the same time.
    package var peakMemory: Int { storage.budget.peak }

    package func close() {
        collector.close()
        storage.close()
    }

    // MARK: Bytes of uploads

    package func create(_ name: String) throws(Errno) -> any Blob { ObjectBlob(name, isNew: true, in: storage) }

    package func open(_ name: String) throws(Errno) -> any Blob { try openBlob(name) }

    func openBlob(_ name: String) throws(Errno) -> ObjectBlob {
        let rows = try read([
            storage.limits.pieces(of: name, before: .max),
            DatabaseStatement(ClusterSQL.hasUpload, [.text(name)]),
        ])
        let pieces = [Piece](rows[0])
        // The blob of an upload without bytes has no pieces.
        guard !pieces.isEmpty || rows[1].boolean(0, 0) == true else { throw .noSuchFile }
        return ObjectBlob(name, pieces, isNew: false, in: storage)
    }

    /// Removes a blob. If the blob has more pieces than one transaction can remove, a collector removes the others.
    package func remove(_ name: String) throws(Errno) {
        try change(DatabaseStatement(ClusterSQL.dropPieces, [.text(name)]))
    }

    package func retainedCount() throws(Errno) -> Int {
        Int(try read([DatabaseStatement(ClusterSQL.countRetained)])[0].integer(0, 0) ?? 0)
    }

    /// Returns no names: a ``PieceCollector`` removes bytes that nothing needs.
    package func names() throws(Errno) -> BlobNames { { () throws(Errno) -> String? in nil } }

    package func size(of name: String) throws(Errno) -> Int64? {
        try read([DatabaseStatement(ClusterSQL.sizeOfBlob, [.text(name)])])[0].integer(0, 0)
    }

    /// The space of an object storage has no limit that could be read.
    package func space() throws(Errno) -> FileSystemSpace { FileSystemSpace(free: 1 << 60, total: 1 << 60) }

    package func probe() throws(Errno) {
        guard let session = try? node.currentSession(), (try? collector.requireOwnStorageOnce()) != nil else {
            throw .timedOut
        }
        let key = "probe/\(session)"
        do throws(ObjectError) {
            try storage.objects.put(key, [])
            try storage.objects.delete([key])
        } catch { throw Errno(error) }
    }

    private func read(_ statements: [DatabaseStatement]) throws(Errno) -> [DatabaseRows] {
        do throws(DatabaseError) { return try node.read(statements) } catch { throw error.errno }
    }

    private func change(_ statement: DatabaseStatement) throws(Errno) {
        do throws(DatabaseError) { _ = try node.change { _ in [statement] } } catch { throw error.errno }
    }
}

extension DatabaseError {
    var isUnavailable: Bool {
        if case .unavailable = self { true } else { false }
    }

    /// The error of a file or a directory for a failed operation on its rows.
    var errno: Errno { isUnavailable ? .timedOut : .inputOutput }

    /// The error of the store for a failed operation on files.
    func fileError(during operation: String) -> StoreError {
        switch self {
        case .unavailable, .failed(ClusterSQL.CatalogError.sessionEnded, _):
            .unavailable("cannot \(operation): \(self)")
        case .failed: .io(.inputOutput, during: "\(operation): \(self)")
        }
    }
}
