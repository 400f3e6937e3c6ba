import ObjectStorage
import PostgreSQL
import SystemCalls
import UploadStorage

/// Verifies the database and the object storage of a cluster, and changes nothing. Servers can be running: their
/// changes cause no finding.
///
/// A row is compared with other rows in one statement, so with the same state of the database. Findings about objects
/// are checked once more before they are reported, in an order in which a change by a server cannot look like a
/// finding:
///
/// - An object is lost if it does not exist, and a row needs it *afterwards*. It was stored before the row was committed.
/// - An object is unneeded if no row needs it, its session has ended, and it exists *afterwards*. See ``PieceCollector``.
package final class ClusterCheck: StoreCheck {
    struct Limits {
        /// The maximum number of rows or objects in one page.
        var page = 1000
        /// The time after which pieces that nothing needs are reported. A server removes the pieces of an upload shortly
        /// after its end.
        var removalTime: Duration = .seconds(15)
        /// The maximum number of unneeded blobs in memory.
        var blobs = 100_000
        /// The time after which an object that is not needed is overdue.
        var overdue = PieceCollector.Settings().gracePeriod + .seconds(3600)
    }

    let cluster: ClusterInspection
    let limits: Limits
    package var summary = CheckSummary()
    /// The lost objects of one blob.
    var losses: [InspectedPiece] = []

    /// A piece whose object is inspected.
    struct InspectedPiece {
        var object: String
        var blob: String
        var start: Int64
        var size: Int64
        /// Whether the object exists; false before that was checked.
        var hasObject: Bool
    }

    package convenience init(_ cluster: ClusterInspection) { self.init(cluster, Limits()) }

    init(_ cluster: ClusterInspection, _ limits: Limits) { (self.cluster, self.limits) = (cluster, limits) }

    package func run(_ report: (CheckFinding) -> Void) throws(StoreError) -> CheckSummary {
        summary = CheckSummary()
        try PieceCollector(database: cluster.database, objects: cluster.objects).requireNoOtherOwner()
        try checkSettings(report)
        try checkUsage(report)
        try checkUploads(report)
        try checkFiles(report)
        try checkRetained(report)
        try checkObjects(report)
        try checkProbes(report)
        try checkUnneededPieces(report)
        try checkGarbage(report)
        return summary
    }

    package func forEachDigest(
        _ body: (PublishedName, [UInt8]) -> Void, failures report: (CheckFinding) -> Void
    ) throws(StoreError) -> CheckSummary {
        let storage = try cluster.pieceStorage()
        defer { storage.close() }
        try forEachFile { (rows, row) throws(StoreError) in
            guard let name = PublishedName(path: String(Self.path(of: rows, row, 0).dropFirst("files/".count))),
                let size = rows.integer(row, 2), let blob = rows.text(row, 5), let modified = rows.integer(row, 6)
            else { return }
            do throws(StoreError) {
                // An empty file has no piece.
                guard try cluster.rows(ClusterSQL.sizeOfBlob, [.text(blob)]).integer(0, 0) ?? 0 == size else {
                    throw .io(.inputOutput, during: "read its pieces")
                }
                body(name, try file(blob, size, modified, storage).sha256())
            } catch {
                if case .unavailable = error { throw error }
                // A file that is replaced or removed now has no pieces any more.
                guard try cluster.rows(ClusterSQL.hasFile, [.text(blob)]).boolean(0, 0) == true else { return }
                found(.fileUnreadable, "files/" + name.path, "\(error)", report)
            }
        }
        return summary
    }

    private func file(
        _ blob: String, _ size: Int64, _ modified: Int64, _ storage: PieceStorage
    ) throws(StoreError) -> PublishedFile {
        do throws(Errno) {
            let attributes = try PublishedFile.Attributes(blob: blob, size: size, modified: modified)
            return PublishedFile(
                attributes: attributes, content: RecordedPieces(of: blob, size: size, storage: storage))
        } catch { throw .failure(error, during: "read its row") }
    }

    var page: DatabaseValue { .integer(Int64(limits.page)) }

    /// Reads pages of rows and calls `body` for each row, until a page is not full.
    /// - Parameters:
    ///   - position: the parameters for the first page.
    ///   - next: the parameters for the page after a row.
    func forEachRow(
        _ sql: String, from position: [DatabaseValue], next: (DatabaseRows, Int) -> [DatabaseValue],
        _ body: (DatabaseRows, Int) throws(StoreError) -> Void
    ) throws(StoreError) {
        var position = position
        while true {
            let rows = try cluster.rows(sql, position + [page])
            for row in 0..<rows.count { try body(rows, row) }
            guard rows.count == limits.page else { return }
            position = next(rows, rows.count - 1)
        }
    }

    private func checkSettings(_ report: (CheckFinding) -> Void) throws(StoreError) {
        for (setting, effect) in CrashSafety.findings(try cluster.rows(ClusterSQL.settingsOff).text(0, 0)) {
            found(.settingOff, setting, "it is off in the database server: \(effect)", report)
        }
    }

    // MARK: Rows

    private func checkUsage(_ report: (CheckFinding) -> Void) throws(StoreError) {
        let rows = try cluster.rows(ClusterSQL.wrongUsage)
        func text(_ row: Int, _ first: Int) -> String {
            let numbers = (first..<first + 3).map { rows.integer(row, $0) ?? 0 }
            return "\(numbers[0]) unfinished uploads, \(numbers[1]) reserved and \(numbers[2]) published bytes"
        }
        for row in 0..<rows.count {
            let (recorded, counted) = (text(row, 1), text(row, 4))
            found(
                .totalsWrong, "onward.usage",
                "\(rows.text(row, 0) ?? ""): the recorded totals are \(recorded), but the rows contain \(counted)",
                report)
        }
    }

    private func checkUploads(_ report: (CheckFinding) -> Void) throws(StoreError) {
        try forEachRow(
            ClusterSQL.inspectUploads, from: [.bytes([])], next: { rows, row in [rows[row, 0]] }
        ) { (rows, row) throws(StoreError) in
            summary.uploads += 1
            let upload: CatalogRow
            do throws(StoreError) { upload = try CatalogRow(rows, row) } catch {
                found(.rowUnreadable, "onward.upload", "\(error)", report)
                return
            }
            guard upload.isUnfinished else { return }
            summary.unfinished += 1
            check(
                upload, end: rows.integer(row, 12) ?? 0, bytes: rows.integer(row, 13) ?? 0, report)
        }
    }

    /// - Parameters:
    ///   - end: the end of the last piece.
    ///   - bytes: the number of bytes in all pieces.
    private func check(
        _ upload: CatalogRow, end: Int64, bytes: Int64, _ report: (CheckFinding) -> Void
    ) {
        // The handler of an upload in processing is not called again, but the store may retain its bytes:
        // `StoreConfiguration.interruption`.
        if bytes == end && bytes >= upload.offset { return }
        found(
            bytes == 0 ? .bytesMissing : .bytesShort, "data/" + upload.blob,
            "\(upload.offset) bytes of \(upload.id) were acknowledged, but its pieces have \(bytes)"
                + (bytes < end ? ", and are not consecutive" : ""),
            report)
    }

    private func checkFiles(_ report: (CheckFinding) -> Void) throws(StoreError) {
        try forEachFile { (rows, row) in
            summary.files += 1
            let (size, end, bytes) = (rows.integer(row, 2) ?? 0, rows.integer(row, 3) ?? 0, rows.integer(row, 4) ?? 0)
            if size == bytes, bytes == end { return }
            found(
                .fileUnreadable, Self.path(of: rows, row, 0),
                "it was published with \(size) bytes, but its pieces have \(bytes)"
                    + (bytes < end ? ", and are not consecutive" : ""), report)
        }
    }

    private func forEachFile(_ body: (DatabaseRows, Int) throws(StoreError) -> Void) throws(StoreError) {
        try forEachRow(
            ClusterSQL.inspectFiles, from: [.text(""), .text("")], next: { rows, row in [rows[row, 0], rows[row, 1]] },
            body)
    }

    private func checkRetained(_ report: (CheckFinding) -> Void) throws(StoreError) {
        try forEachRow(
            ClusterSQL.inspectRetained, from: [.text("")], next: { rows, row in [rows[row, 0]] }
        ) { (rows, row) in
            guard let end = rows.integer(row, 1), let bytes = rows.integer(row, 2), bytes != end else { return }
            found(
                .bytesShort, "retained/" + (rows.text(row, 0) ?? ""),
                "its pieces have only \(bytes) bytes of at least \(end)", report)
        }
    }

    /// The path of a file whose directory is in the column `first`, and whose name is in the next one.
    static func path(of rows: DatabaseRows, _ row: Int, _ first: Int) -> String {
        let directory = rows.text(row, first) ?? ""
        return "files/" + (directory.isEmpty ? "" : directory + "/") + (rows.text(row, first + 1) ?? "")
    }
}
