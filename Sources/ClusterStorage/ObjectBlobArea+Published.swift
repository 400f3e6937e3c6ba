import HTTPSemantics
import PostgreSQL
import SystemCalls
import UploadStorage

extension ObjectBlobArea {
    /// The maximum number of bytes in a path. An entry of the index of names has at most 2704 bytes, with its headers.
    private static let maxPathLength = 2600

    package func requirePossible(_ name: PublishedName) throws(StoreError) {
        if !isPossible(name) { throw .pathTooLong(limit: Self.maxPathLength) }
    }

    private func isPossible(_ name: PublishedName) -> Bool { name.path.utf8.count <= Self.maxPathLength }

    package func openPublished(_ name: PublishedName) throws(StoreError) -> PublishedBlob {
        guard isPossible(name) else { throw .notFound }
        let rows = try read(
            "open a published file",
            [storage.limits.openFile(name), kind(of: name.directory)])
        let file = rows[0]
        guard file.count > 0 else { throw rows[1].text(0, 0) == "file" ? .parentIsFile : .notFound }
        if file.boolean(0, 0) == true { throw .targetIsDirectory }
        guard let blob = file.text(0, 1), let size = file.integer(0, 2), let modified = file.integer(0, 3),
            let tag = file.text(0, 4).flatMap({ EntityTag(opaque: $0) })
        else { throw .io(.inputOutput, during: "read the row of \(name)") }
        let fields = file.bytes(0, 5).flatMap { try? Fields(savedBytes: $0) } ?? [:]
        let pieces = [Piece](file, firstColumn: 6)
        guard pieces.end == size || pieces.end < size && pieces.isFull(storage.limits) else {
            throw .io(.inputOutput, during: "read the pieces of \(name)")
        }
        let content = RecordedPieces(of: blob, size: size, first: pieces, storage: storage)
        let attributes = PublishedFile.Attributes(
            size: size, modifiedSeconds: modified / 1_000_000_000, modifiedNanoseconds: modified % 1_000_000_000,
            entityTag: tag)
        return PublishedBlob(
            identity: blob, file: PublishedFile(attributes: attributes, fields: fields, content: content))
    }

    package func isPublished(_ name: PublishedName) throws(StoreError) -> Bool {
        let rows = try read(
            "look for a published file", [DatabaseStatement(ClusterSQL.isDirectory, name.entry)])[0]
        return rows.count > 0 && rows.boolean(0, 0) == false
    }

    package func makeDirectories(for name: PublishedName, durably isDurable: Bool) throws(StoreError) {
        if name.directory.segments.isEmpty { return }
        let rows = try change(
            "make directories", DatabaseStatement(ClusterSQL.makeDirectories, name.directory.path))
        if rows.text(0, 0) != "directory" { throw .parentIsFile }
    }

    package func removePublished(_ name: PublishedName, tagged tag: String) throws(StoreError) {
        func attempt() throws(DatabaseError) -> String? {
            let parameters = name.directory.path + name.entry + [.text(tag)]
            return try node.change { _ in [DatabaseStatement(ClusterSQL.removeName, parameters)] }.rows[0].text(0, 0)
        }
        var isRepeated = false
        let outcome: String?
        do throws(DatabaseError) {
            do throws(DatabaseError) { outcome = try attempt() } catch {
                guard error.isPossiblyCommitted else { throw error }
                isRepeated = true
                outcome = try node.awaitOutcomes(then: attempt)
            }
        } catch { throw error.fileError(during: "remove a published file") }
        switch outcome {
        case "removed": return
        // The first attempt, or another request meanwhile, has removed the file that the caller named.
        case "missing" where isRepeated: return
        // It is not known whether the first attempt has removed the file that the caller named, or whether another request had
        // replaced that file before.
        case "occupied" where isRepeated: throw .unavailable("the outcome of a removal is not known")
        case "occupied": throw .preconditionFailed
        case "directory": throw .targetIsDirectory
        case "file": throw .parentIsFile
        default: throw .notFound
        }
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
    var entry: [DatabaseValue] { [.text(directory.parentOfEntries), .text(lastSegment)] }
}

extension PublishedName.Directory {
    /// The value of the column `parent` in the rows of its entries.
    var parentOfEntries: String { segments.joined(separator: "/") }

    /// The columns `parent` and `name` of all directories of the path, from the root on, as two arrays.
    var path: [DatabaseValue] {
        let parents = segments.indices.map { segments[..<$0].joined(separator: "/") }
        return [.texts(parents), .texts(segments)]
    }
}
