import HTTPSemantics
import PostgreSQL
import SystemCalls
import UploadStorage

extension ObjectBlobArea {
    package func openPublished(_ name: PublishedName) throws(StoreError) -> PublishedBlob {
        let rows = try read(
            "open a published file",
            [
                DatabaseStatement(ClusterSQL.openFile, name.entry + [.integer(Int64(storage.limits.maxListed))]),
                kind(of: name.directory),
            ])
        let file = rows[0]
        guard file.count > 0 else { throw rows[1].text(0, 0) == "file" ? .parentIsFile : .notFound }
        if file.boolean(0, 0) == true { throw .targetIsDirectory }
        guard let blob = file.text(0, 1), let size = file.integer(0, 2), let modified = file.integer(0, 3),
            let tag = file.text(0, 4).flatMap({ EntityTag(opaque: $0) })
        else { throw .io(.inputOutput, during: "read the row of \(name)") }
        let pieces = [Piece](file, firstColumn: 5)
        guard pieces.end == size || pieces.end < size && pieces.count == storage.limits.maxListed else {
            throw .io(.inputOutput, during: "read the pieces of \(name)")
        }
        let content = PublishedPieces(of: blob, size: size, first: pieces, database: node.database, storage: storage)
        let attributes = PublishedFile.Attributes(
            size: size, modifiedSeconds: modified / 1_000_000_000, modifiedNanoseconds: modified % 1_000_000_000,
            entityTag: tag)
        return PublishedBlob(identity: blob, file: PublishedFile(attributes: attributes, content: content))
    }

    package func isPublished(_ name: PublishedName) throws(StoreError) -> Bool {
        let rows = try read(
            "look for a published file", [DatabaseStatement(ClusterSQL.isDirectory, name.entry)])[0]
        return rows.count > 0 && rows.boolean(0, 0) == false
    }

    package func makeDirectories(for name: PublishedName, durably: Bool) throws(StoreError) {
        if name.directory.segments.isEmpty { return }
        let rows = try change(
            "make directories", DatabaseStatement(ClusterSQL.makeDirectories, name.directory.path))
        if rows.text(0, 0) != "directory" { throw .parentIsFile }
    }

    package func requirePublishable(_ name: PublishedName) throws(StoreError) {}

    package var synchronizationEpoch: SynchronizationEpoch { SynchronizationEpoch() }

    package func publish(
        _ name: String, as published: PublishedName, replacing tag: String?, fence: Int64?
    ) throws(StoreError) -> SynchronizationEpoch {
        let operation = "publish a file"
        let attributes: PublishedFile.Attributes
        let modified: Int64
        do throws(Errno) {
            let known = storage.ledger.blob(name)
            let blob = if let known { known } else { try openBlob(name) }
            try blob.synchronize(including: nil)
            attributes = try blob.attributes()
            modified = attributes.modifiedSeconds * 1_000_000_000 + attributes.modifiedNanoseconds
        } catch { throw .failure(error, during: operation) }
        let change = storage.ledger.change(of: name)
        let values =
            [.text(name), DatabaseValue(fence)] + published.directory.path + published.entry + [
                .integer(attributes.size), .integer(modified), .text(attributes.entityTag.opaque), DatabaseValue(tag),
            ] + (change?.parameters ?? PieceChange.noParameters)
        let outcome: String?
        do throws(DatabaseError) {
            outcome = try node.change { [DatabaseStatement(ClusterSQL.publish, [.integer($0)] + values)] }.rows[0].text(
                0, 0)
        } catch {
            if let change, !error.mayHaveCommitted { storage.ledger.rejected(change) }
            throw error.fileError(during: operation)
        }
        if outcome == "published" {
            if let change { storage.ledger.recorded(change) }
            return SynchronizationEpoch()
        }
        if let change { storage.ledger.rejected(change) }
        throw Self.error(outcome)
    }

    private static func error(_ outcome: String?) -> StoreError {
        switch outcome {
        case "occupied": .preconditionFailed
        // The holder of its upload, or a sweep of any server, records the publication.
        case "unsettled": .heldElsewhere
        case "directory": .targetIsDirectory
        case "file": .parentIsFile
        default: .notFound
        }
    }

    /// Does nothing: the publication is durable if the file has its name.
    package func republish(
        _ published: PublishedName, from name: String, modified: Int64
    ) throws(StoreError) -> SynchronizationEpoch { SynchronizationEpoch() }

    package func synchronizePublication(
        _ name: PublishedName, of blob: (any Blob)?, since epoch: SynchronizationEpoch
    ) throws(StoreError) {}

    /// Each thread stores the bytes of its file, and publishes it, at the same time as the others.
    package var canSynchronizeTogether: Bool { false }

    package func synchronize(_ blobs: [any Blob]) throws(Errno) {
        for blob in blobs { try blob.synchronize(including: .attributes) }
    }

    package func synchronizeNames(_ names: [PublishedName], since epoch: SynchronizationEpoch) throws(StoreError) {}

    package func withdrawUnrecorded(_ published: PublishedName, of name: String) {
        node.changeLater(
            DatabaseStatement(
                ClusterSQL.withdrawUnrecorded, published.directory.path + published.entry + [.text(name)]))
    }

    package func withdraw(_ published: PublishedName, to name: String) throws(StoreError) -> SynchronizationEpoch {
        // If another file has the name, the publication has been replaced.
        _ = try removeName(published, [.text(name), .null], during: "withdraw a publication")
        return SynchronizationEpoch()
    }

    package func synchronizeWithdrawal(_ published: PublishedName, since epoch: SynchronizationEpoch) throws(StoreError)
    {}

    package func removePublished(_ name: PublishedName, tagged tag: String) throws(StoreError) {
        let outcome = try removeName(name, [.null, .text(tag)], during: "remove a published file")
        if outcome != "removed" { throw Self.error(outcome) }
    }

    private func removeName(
        _ name: PublishedName, _ file: [DatabaseValue], during operation: String
    ) throws(StoreError) -> String? {
        try change(operation, DatabaseStatement(ClusterSQL.removeName, name.directory.path + name.entry + file))
            .text(0, 0)
    }

    package func openDirectory(_ directory: PublishedName.Directory) throws(StoreError) -> any PublishedDirectory {
        switch try read("open a directory", [kind(of: directory)])[0].text(0, 0) {
        case "directory": return PublishedRows(of: directory, in: node.database)
        case "file": throw .parentIsFile
        default: throw .notFound
        }
    }

    private func kind(of directory: PublishedName.Directory) -> DatabaseStatement {
        DatabaseStatement(ClusterSQL.kindOfPath, directory.path)
    }

    private func read(_ operation: String, _ statements: [DatabaseStatement]) throws(StoreError) -> [DatabaseRows] {
        do throws(DatabaseError) { return try node.read(statements) } catch { throw error.fileError(during: operation) }
    }

    private func change(_ operation: String, _ statement: DatabaseStatement) throws(StoreError) -> DatabaseRows {
        do throws(DatabaseError) { return try node.change { _ in [statement] }.rows[0] } catch {
            throw error.fileError(during: operation)
        }
    }
}

extension PublishedName {
    /// The columns `parent` and `name` of its row.
    fileprivate var entry: [DatabaseValue] { [.text(directory.parentOfEntries), .text(lastSegment)] }
}

extension PublishedName.Directory {
    /// The value of the column `parent` in the rows of its entries.
    var parentOfEntries: String { segments.joined(separator: "/") }

    /// The columns `parent` and `name` of all directories of the path, from the root on, as two arrays.
    fileprivate var path: [DatabaseValue] {
        let parents = segments.indices.map { segments[..<$0].joined(separator: "/") }
        return [.texts(parents), .texts(segments)]
    }
}
