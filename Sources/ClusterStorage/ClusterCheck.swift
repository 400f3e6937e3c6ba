import ObjectStorage
import PostgreSQL
import SystemCalls
import UploadStorage

/// Verifies the database and the object storage of a cluster, and changes nothing. Servers can be running: what they do
/// meanwhile causes no finding.
///
/// A row is compared with other rows in one statement, so with the same state of the database. What concerns objects is
/// checked once more before it is reported, in an order in which a change by a server cannot look like a finding:
///
/// - An object is lost if it does not exist, and a row needs it *afterwards*. It was stored before the row was committed.
/// - An object is unneeded if no row needs it, its session has ended, and it exists *afterwards*. See ``PieceCollector``.
package final class ClusterCheck: StoreCheck {
    struct Limits {
        /// The number of rows or objects that are read at the same time.
        var page = 1000
        /// The time after which pieces that nothing needs are reported. A server removes the pieces of an upload shortly
        /// after its end.
        var settling: Duration = .seconds(15)
        /// The number of blobs without a need that are in memory at the same time.
        var blobs = 100_000
        /// The time after which an object that is not needed is overdue.
        var overdue = PieceCollector.Settings().gracePeriod + .seconds(3600)
    }

    private let cluster: ClusterInspection
    private let limits: Limits
    private var summary = CheckSummary()
    /// The lost objects of one blob.
    private var losses: [Loss] = []

    /// A piece whose object does not exist, or is too short.
    private struct Loss {
        var object: String
        var blob: String
        var start: Int64
        var size: Int64
        var exists: Bool
    }

    package convenience init(_ cluster: ClusterInspection) { self.init(cluster, Limits()) }

    init(_ cluster: ClusterInspection, _ limits: Limits) { (self.cluster, self.limits) = (cluster, limits) }

    package func run(_ report: (CheckFinding) -> Void) throws(StoreError) -> CheckSummary {
        summary = CheckSummary()
        try PieceCollector(database: cluster.database, objects: cluster.objects).requireOwnStorage(claims: false)
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
                let pieces = [Piece](try cluster.rows(ClusterSQL.pieces, [.text(blob)]))
                guard pieces.end == size else { throw .io(.inputOutput, during: "read its pieces") }
                body(name, try file(blob, pieces, modified, storage).sha256())
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
        _ blob: String, _ pieces: [Piece], _ modified: Int64, _ storage: PieceStorage
    ) throws(StoreError) -> PublishedFile {
        let content = PublishedPieces(
            of: blob, size: pieces.end, first: pieces, database: cluster.database, storage: storage)
        do throws(Errno) {
            let attributes = try PublishedFile.Attributes(blob: blob, size: pieces.end, modified: modified)
            return PublishedFile(attributes: attributes, content: content)
        } catch { throw .failure(error, during: "read its row") }
    }

    private func found(
        _ kind: CheckFinding.Kind, _ path: String, _ detail: String, _ report: (CheckFinding) -> Void
    ) {
        let finding = CheckFinding(kind, path, detail)
        summary.count(finding)
        report(finding)
    }

    private var page: DatabaseValue { .integer(Int64(limits.page)) }

    /// Reads pages of rows and calls `body` for each row, until a page is not full.
    /// - Parameters:
    ///   - position: the parameters for the first page.
    ///   - next: the parameters for the page after a row.
    private func forEachRow(
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
        if upload.phase != .receiving || bytes == end && bytes >= upload.offset { return }
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
    private static func path(of rows: DatabaseRows, _ row: Int, _ first: Int) -> String {
        let directory = rows.text(row, first) ?? ""
        return "files/" + (directory.isEmpty ? "" : directory + "/") + (rows.text(row, first + 1) ?? "")
    }

    // MARK: Objects

    private func checkObjects(_ report: (CheckFinding) -> Void) throws(StoreError) {
        var after: String?
        repeat {
            let listed = try list("data/", after: after)
            let last = listed.count == limits.page ? listed.last?.key : nil
            var unknown = Dictionary(listed.map { ($0.key, $0.size) }, uniquingKeysWith: { first, _ in first })
            try forEachPage(ofPiecesAfter: after ?? "", upTo: last) { (pieces) throws(StoreError) in
                let suspects = pieces.filter { (unknown[$0.object] ?? -1) < $0.size }
                for piece in pieces where !suspects.contains(where: { $0.object == piece.object }) {
                    unknown[piece.object] = nil
                }
                for loss in try confirmed(suspects) {
                    if let first = losses.first, first.blob != loss.blob { try reportLosses(report) }
                    losses.append(loss)
                }
                for piece in suspects { unknown[piece.object] = nil }
            }
            try reportUnneeded(unknown, report)
            after = last
        } while after != nil
        try reportLosses(report)
    }

    private func list(_ prefix: String, after: String?) throws(StoreError) -> [ObjectListing] {
        do throws(ObjectError) {
            return try cluster.objects.list(prefix: prefix, after: after, limit: limits.page)
        } catch {
            throw StoreError(error, during: "list objects")
        }
    }

    /// Reads the pieces in objects with keys after `first` and up to `last`; nil: up to the last one.
    private func forEachPage(
        ofPiecesAfter first: String, upTo last: String?, _ body: ([Loss]) throws(StoreError) -> Void
    ) throws(StoreError) {
        var position: [DatabaseValue] = [.text(first), .integer(.max)]
        while true {
            let rows = try cluster.rows(ClusterSQL.inspectObjects, position + [DatabaseValue(last), page])
            let pieces = Self.pieces(rows)
            if !pieces.isEmpty { try body(pieces) }
            guard rows.count == limits.page, let next = pieces.last else { return }
            position = [.text(next.object), .integer(next.start)]
        }
    }

    private static func pieces(_ rows: DatabaseRows) -> [Loss] {
        (0..<rows.count).compactMap { row in
            guard let object = rows.text(row, 0), let blob = rows.text(row, 1), let start = rows.integer(row, 2),
                let size = rows.integer(row, 3)
            else { return nil }
            return Loss(object: object, blob: blob, start: start, size: size, exists: false)
        }
    }

    /// Those pieces whose objects do not have their bytes, and that exist afterwards.
    private func confirmed(_ suspects: [Loss]) throws(StoreError) -> [Loss] {
        var lost: [String: Loss] = [:]
        for suspect in suspects {
            if try contains(suspect.object, suspect.size - 1) { continue }
            var loss = suspect
            loss.exists = try exists(suspect.object)
            lost[suspect.object] = loss
        }
        if lost.isEmpty { return [] }
        let all = lost.values.sorted { ($0.object, $0.start) < ($1.object, $1.start) }
        let existing = try cluster.rows(
            ClusterSQL.existingPieces,
            [
                .texts(all.map(\.object)), .texts(all.map(\.blob)), .integers(all.map(\.start)),
                .integers(all.map(\.size)),
            ])
        return Self.pieces(existing).compactMap { lost[$0.object] }
    }

    private func contains(_ object: String, _ offset: Int64) throws(StoreError) -> Bool {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1, alignment: 1)
        defer { buffer.deallocate() }
        do throws(ObjectError) { return try cluster.objects.get(object, offset..<offset + 1, into: buffer) == 1 } catch
        {
            if error == .notFound { return false }
            throw StoreError(error, during: "read the object \(object)")
        }
    }

    private func exists(_ object: String) throws(StoreError) -> Bool {
        do throws(ObjectError) {
            return try cluster.objects.list(prefix: object, after: nil, limit: 1).first?.key == object
        } catch { throw StoreError(error, during: "list objects") }
    }

    /// Reports the lost objects of one blob: for each file, upload or request that needs them.
    private func reportLosses(_ report: (CheckFinding) -> Void) throws(StoreError) {
        defer { losses = [] }
        guard let first = losses.min(by: { $0.start < $1.start }) else { return }
        let rows = try cluster.rows(ClusterSQL.needs, [.text(first.blob), .integer(first.start)])
        let (missing, short) = (losses.count { !$0.exists }, losses.count { $0.exists })
        let counts = [(missing, "missing"), (short, "too short")].filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }
        let detail =
            "objects: \(counts.joined(separator: ", ")); the first is \(first.object) with the bytes from \(first.start) on"
        var files: [String] = []
        var others: [(CheckFinding.Kind, String, String)] = []
        for row in 0..<rows.count {
            if let id = rows.bytes(row, 0).flatMap(UploadID.init(bytes:)) {
                others.append((missing > 0 ? .bytesMissing : .bytesShort, "data/" + first.blob, "\(id): \(detail)"))
            } else if let key = rows.text(row, 3) {
                others.append((missing > 0 ? .bytesMissing : .bytesShort, "retained/" + key, detail))
            } else {
                files.append(Self.path(of: rows, row, 1))
            }
        }
        for file in files { found(.fileUnreadable, file, detail, report) }
        // The upload of a published file is about to end.
        if files.isEmpty { for (kind, path, detail) in others { found(kind, path, detail, report) } }
    }

    /// - Parameter objects: the sizes of listed objects that no piece has.
    private func reportUnneeded(_ objects: [String: Int64], _ report: (CheckFinding) -> Void) throws(StoreError) {
        if objects.isEmpty { return }
        let rows = try cluster.rows(ClusterSQL.unneededObjects, [.texts(objects.keys.sorted())])
        for row in 0..<rows.count {
            guard let key = rows.text(row, 0), let size = objects[key], try exists(key) else { continue }
            found(
                .bytesUnknown, key,
                "its \(size) bytes belong to no upload and no file; "
                    + (rows.boolean(row, 1) == true
                        ? "a server deletes it within a day" : "no server has stored it, and none deletes it"),
                report)
        }
    }

    /// The objects of sessions that ended while they checked the storage.
    private func checkProbes(_ report: (CheckFinding) -> Void) throws(StoreError) {
        var after: String?
        repeat {
            let listed = try list("probe/", after: after)
            let sessions = listed.compactMap { Int64($0.key.dropFirst("probe/".count)) }
            let rows = try cluster.rows(ClusterSQL.endedSessions, [.integers(sessions)])
            let ended = Set((0..<rows.count).compactMap { rows.integer($0, 0) })
            for session in ended.sorted() where try exists("probe/\(session)") {
                found(
                    .bytesUnknown, "probe/\(session)", "its server has ended during a check of the storage; delete it",
                    report)
            }
            after = listed.count == limits.page ? listed.last?.key : nil
        } while after != nil
    }

    // MARK: What nothing needs

    private func checkUnneededPieces(_ report: (CheckFinding) -> Void) throws(StoreError) {
        var blobs: [String] = []
        try forEachRow(
            ClusterSQL.unneededBlobs, from: [.text("")], next: { rows, row in [rows[row, 0]] }
        ) { (rows, row) throws(StoreError) in
            if let blob = rows.text(row, 0) { blobs.append(blob) }
            if blobs.count < limits.blobs { return }
            try reportUnneeded(blobs, report)
            blobs = []
        }
        try reportUnneeded(blobs, report)
    }

    private func reportUnneeded(_ blobs: [String], _ report: (CheckFinding) -> Void) throws(StoreError) {
        var remaining: [(blob: String, bytes: Int64)] = blobs.map { ($0, 0) }
        let deadline = SystemClock.deadline(in: limits.settling)
        while !remaining.isEmpty {
            var next: [(blob: String, bytes: Int64)] = []
            for start in stride(from: 0, to: remaining.count, by: limits.page) {
                let names = remaining[start..<min(start + limits.page, remaining.count)].map(\.blob)
                let rows = try cluster.rows(ClusterSQL.stillUnneededBlobs, [.texts(names)])
                next += (0..<rows.count).map { (rows.text($0, 0) ?? "", rows.integer($0, 1) ?? 0) }
            }
            remaining = next
            if SystemClock.monotonicNanoseconds() >= deadline { break }
            SystemClock.pause(nanoseconds: 500_000_000)
        }
        for (blob, bytes) in remaining {
            found(
                .bytesUnknown, "data/" + blob,
                "its pieces with \(bytes) bytes belong to no upload and no file; a server removes them within a day",
                report)
        }
    }

    private func checkGarbage(_ report: (CheckFinding) -> Void) throws(StoreError) {
        let now = SystemClock.realtimeSeconds()
        var position = ""
        while true {
            let rows = try cluster.rows(
                ClusterSQL.overdueGarbage, [.text(position), .integer(limits.overdue.milliseconds), page])
            for row in 0..<rows.count {
                guard let object = rows.text(row, 0), let since = rows.integer(row, 1) else { continue }
                found(
                    .garbageOverdue, object,
                    "it has not been needed for \((now - since) / 3600) hours; a server deletes such objects after a day"
                        + " if it can reach the storage", report)
            }
            guard rows.count == limits.page, let last = rows.text(rows.count - 1, 0) else { return }
            position = last
        }
    }
}
