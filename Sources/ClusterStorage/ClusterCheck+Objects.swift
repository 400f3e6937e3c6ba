import ObjectStorage
import PostgreSQL
import SystemCalls
import UploadStorage

/// The objects of the storage, compared with the rows that need them.
extension ClusterCheck {
    func checkObjects(_ report: (CheckFinding) -> Void) throws(StoreError) {
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
            try reportUnneededObjects(unknown, report)
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
        ofPiecesAfter first: String, upTo last: String?, _ body: ([InspectedPiece]) throws(StoreError) -> Void
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

    private static func pieces(_ rows: DatabaseRows) -> [InspectedPiece] {
        (0..<rows.count).compactMap { row in
            guard let object = rows.text(row, 0), let blob = rows.text(row, 1), let start = rows.integer(row, 2),
                let size = rows.integer(row, 3)
            else { return nil }
            return InspectedPiece(object: object, blob: blob, start: start, size: size, hasObject: false)
        }
    }

    /// Returns the suspects whose objects are missing or too short, and whose rows still exist after the objects were
    /// checked.
    private func confirmed(_ suspects: [InspectedPiece]) throws(StoreError) -> [InspectedPiece] {
        var lost: [String: InspectedPiece] = [:]
        for suspect in suspects {
            if try contains(suspect.object, suspect.size - 1) { continue }
            var loss = suspect
            loss.hasObject = try exists(suspect.object)
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

    /// Reports the lost objects of one blob, with one finding for each file, upload or request that needs them.
    private func reportLosses(_ report: (CheckFinding) -> Void) throws(StoreError) {
        defer { losses = [] }
        guard let first = losses.min(by: { $0.start < $1.start }) else { return }
        let rows = try cluster.rows(ClusterSQL.needs, [.text(first.blob), .integer(first.start)])
        let (missing, short) = (losses.count { !$0.hasObject }, losses.count { $0.hasObject })
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
        // If a file has the blob, its upload is about to end, so only the file is reported.
        if files.isEmpty { for (kind, path, detail) in others { found(kind, path, detail, report) } }
    }

    /// - Parameter objects: the sizes of listed objects that no piece has.
    private func reportUnneededObjects(_ objects: [String: Int64], _ report: (CheckFinding) -> Void) throws(StoreError)
    {
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

    /// Reports the objects that sessions wrote to check the storage, and could not delete before they ended.
    func checkProbes(_ report: (CheckFinding) -> Void) throws(StoreError) {
        var after: String?
        repeat {
            let listed = try list("probe/", after: after)
            let sessions = listed.compactMap { Int64($0.key.dropFirst("probe/".count)) }
            let rows = try cluster.rows(ClusterSQL.endedSessions, [.integers(sessions)])
            let ended = Set((0..<rows.count).compactMap { rows.integer($0, 0) })
            for session in ended.sorted() where try exists("probe/\(session)") {
                found(
                    .bytesUnknown, "probe/\(session)",
                    "the server that wrote this object to check the storage has ended; another server deletes the object within a day",
                    report)
            }
            after = listed.count == limits.page ? listed.last?.key : nil
        } while after != nil
    }

    // MARK: Unneeded bytes

    func checkUnneededPieces(_ report: (CheckFinding) -> Void) throws(StoreError) {
        var blobs: [String] = []
        try forEachRow(
            ClusterSQL.unneededBlobs, from: [.text("")], next: { rows, row in [rows[row, 0]] }
        ) { (rows, row) throws(StoreError) in
            if let blob = rows.text(row, 0) { blobs.append(blob) }
            if blobs.count < limits.blobs { return }
            try reportUnneededBlobs(blobs, report)
            blobs = []
        }
        try reportUnneededBlobs(blobs, report)
    }

    private func reportUnneededBlobs(_ blobs: [String], _ report: (CheckFinding) -> Void) throws(StoreError) {
        var remaining: [(blob: String, bytes: Int64)] = blobs.map { ($0, 0) }
        let deadline = SystemClock.deadline(in: limits.removalTime)
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

    func checkGarbage(_ report: (CheckFinding) -> Void) throws(StoreError) {
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
