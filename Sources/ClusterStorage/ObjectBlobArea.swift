import HTTPSemantics
import ObjectStorage
import PostgreSQL
import SystemCalls
import UploadStorage

/// A blob area that several nodes share: the bytes are objects of an object storage, and their names are in a database.
///
/// Every publication, and every change of a name, is durable on return. So the methods that synchronize names do nothing.
package final class ObjectBlobArea: BlobArea {
    let database: Database
    let storage: PieceStorage
    /// Removes what nothing needs. ``close()`` closes it.
    let collector: PieceCollector
    private let session: @Sendable () -> Int64?

    /// - Parameters:
    ///   - ledger: the ledger from which the catalog of the same database records pieces.
    ///   - writers: the number of threads that store objects.
    ///   - session: returns the number of the current session of this process; nil if it has none.
    package convenience init(
        database: Database, objects: any ObjectStore, ledger: PieceLedger, writers: Int = 8,
        session: @escaping @Sendable () -> Int64?
    ) throws(StoreError) {
        try self.init(
            database: database, objects: objects, ledger: ledger, limits: PieceLimits(), writers: writers,
            session: session)
    }

    init(
        database: Database, objects: any ObjectStore, ledger: PieceLedger, limits: PieceLimits, writers: Int,
        session: @escaping @Sendable () -> Int64?
    ) throws(StoreError) {
        self.database = database
        self.session = session
        collector = PieceCollector(database: database, objects: objects)
        do throws(Errno) {
            storage = try PieceStorage(
                objects: objects, ledger: ledger, limits: limits, writers: writers, session: session)
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
        let rows = try run([
            DatabaseStatement(ClusterSQL.pieces, [.text(name)]),
            DatabaseStatement(ClusterSQL.hasUpload, [.text(name)]),
        ])
        let pieces = [Piece](rows[0])
        // The blob of an upload without bytes has no pieces.
        guard !pieces.isEmpty || rows[1].boolean(0, 0) == true else { throw .noSuchFile }
        return ObjectBlob(name, pieces, isNew: false, in: storage)
    }

    package func remove(_ name: String) throws(Errno) {
        _ = try run([DatabaseStatement(ClusterSQL.dropPieces, [.text(name)])])
    }

    package func retain(_ name: String, as key: String, description: [UInt8]) throws(Errno) {
        _ = try run([DatabaseStatement(ClusterSQL.retain, [.text(key), .text(name), .bytes(description)])])
    }

    package func retainedCount() throws(Errno) -> Int {
        Int(try run([DatabaseStatement(ClusterSQL.countRetained)])[0].integer(0, 0) ?? 0)
    }

    /// Returns no names: a ``PieceCollector`` removes bytes that nothing needs.
    package func names() throws(Errno) -> BlobNames { { () throws(Errno) -> String? in nil } }

    package func size(of name: String) throws(Errno) -> Int64? {
        try run([DatabaseStatement(ClusterSQL.sizeOfBlob, [.text(name)])])[0].integer(0, 0)
    }

    /// The space of an object storage has no limit that could be read.
    package func space() throws(Errno) -> FileSystemSpace { FileSystemSpace(free: 1 << 60, total: 1 << 60) }

    package func probe() throws(Errno) {
        let key = "probe/\(try currentSession)"
        do throws(ObjectError) {
            try storage.objects.put(key, [])
            try storage.objects.delete([key])
        } catch { throw Errno(error) }
    }

    var currentSession: Int64 {
        get throws(Errno) {
            guard let session = session() else { throw .timedOut }
            return session
        }
    }

    private func run(_ statements: [DatabaseStatement]) throws(Errno) -> [DatabaseRows] {
        do throws(DatabaseError) { return try database.transaction(statements) } catch {
            throw error.isUnavailable ? .timedOut : .inputOutput
        }
    }
}

extension DatabaseError {
    var isUnavailable: Bool {
        if case .unavailable = self { true } else { false }
    }

    /// The error of the store for a failed operation on files.
    func fileError(during operation: String) -> StoreError {
        switch self {
        case .unavailable: .unavailable("cannot \(operation): \(self)")
        case .failed(ClusterSQL.FilesError.sessionEnded, _), .failed(ClusterSQL.FilesError.superseded, _): .superseded
        case .failed: .io(.inputOutput, during: "\(operation): \(self)")
        }
    }
}
