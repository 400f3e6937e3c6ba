import Digests
import ResumableUpload
import SystemCalls

/// A copy of a store that no server uses, to another pair of catalog and blob area. It can be interrupted at any point
/// and run again: files and uploads that were copied already are not copied again. If a server has used the source
/// between two runs, the uploads that it has continued are reported as problems.
///
/// Each file and each unfinished upload is read from the destination after it was written, and its SHA-256 is compared
/// before anything refers to it. The source is not changed.
package struct StoreCopy {
    /// One of the two stores.
    package struct Place {
        package var catalog: any UploadCatalog
        package var area: any BlobArea
        /// The current time of the store's clock for lifetimes, in seconds.
        package var time: Int64
        /// Throws if a server may have changed the store since it was opened.
        package var requireUnchanged: @Sendable () throws(StoreError) -> Void = {}

        package init(catalog: any UploadCatalog, area: any BlobArea, time: Int64) {
            self.catalog = catalog
            self.area = area
            self.time = time
        }
    }

    /// The numbers of copied files and other items.
    package struct Report: Sendable, Hashable {
        package var files = 0
        package var uploads = 0
        /// Finished uploads whose final response is kept.
        package var responses = 0
        package var events = 0
        package var bytes: Int64 = 0
        /// Files, uploads and events that the destination had already.
        package var present = 0
        /// A sentence for each thing that could not be copied.
        package var problems: [String] = []
    }

    private static let pageSize = 200
    private static let pieceSize = 1 << 20

    private let source: Place
    private let destination: Place
    private let progress: (Report) -> Void
    private var report = Report()

    /// - Parameter progress: called after each file, upload or page of responses.
    package init(from source: Place, to destination: Place, progress: @escaping (Report) -> Void = { _ in }) {
        (self.source, self.destination, self.progress) = (source, destination, progress)
    }

    /// Copies everything. Throws if the source is in a state that cannot be copied, or if one of the stores cannot be
    /// used any more.
    package mutating func run() throws(StoreError) -> Report {
        try requireSettled()
        try copyFiles(in: .root)
        try copyUploads()
        try copyEvents()
        try source.requireUnchanged()
        return report
    }

    /// The source must contain no work that only a server can complete.
    private func requireSettled() throws(StoreError) {
        guard try source.catalog.processingCount() == 0 else {
            throw .invalidState(
                "uploads are being processed or published; start the server once, stop it, and repeat the command")
        }
        let retained = try translating("count the retained requests") { () throws(Errno) in
            try source.area.retainedCount()
        }
        guard retained == 0 else {
            throw .invalidState(
                "requests with unknown outcomes are kept, and are not copied; resend or drop them with 'onward outcomes'"
            )
        }
        guard try source.catalog.countEvents().setAside == 0 else {
            throw .invalidState("events are set aside; retry or drop them with 'onward events'")
        }
    }

    // MARK: Files

    private mutating func copyFiles(in directory: PublishedName.Directory) throws(StoreError) {
        let opened = try source.area.openDirectory(directory)
        while let next = try nextEntry(of: opened) {
            guard let name = directory.appending(next.name) else { continue }
            guard !next.isDirectory else {
                try copyFiles(in: name.asDirectory)
                continue
            }
            do throws(StoreError) { try copyFile(name) } catch {
                guard error.isAboutOneFile else { throw error }
                report.problems.append("\(name): \(error)")
            }
            progress(report)
        }
    }

    private func nextEntry(of directory: any PublishedDirectory) throws(StoreError) -> PublishedEntry? {
        try translating("list a directory") { () throws(Errno) in
            while let name = try directory.nextName({ NameSelection.listedName($0) }) {
                if let name, let entry = try directory.entry(name) { return entry }
            }
            return nil
        }
    }

    private mutating func copyFile(_ name: PublishedName) throws(StoreError) {
        let found = try source.area.openPublished(name)
        let attributes = found.file.attributes
        let time = attributes.modifiedSeconds * 1_000_000_000 + attributes.modifiedNanoseconds
        if let present = try present(name, attributes) {
            // The last run may have been interrupted before it recorded the file.
            if destination.area is any PublishingBlobArea, try destination.catalog.file(name.path) == nil {
                try record(name, found, present, blob: "")
            }
            report.present += 1
            return
        }
        let blobName = UploadID().text
        let blob = try create(blobName)
        do throws(StoreError) {
            let digest = try copy(to: blob) { (buffer, offset) throws(StoreError) in
                try found.file.read(into: buffer, at: offset)
            }
            try translating("store the time of a file") { () throws(Errno) in try blob.setModified(time) }
            try translating("synchronize a file") { () throws(Errno) in try blob.synchronize(including: .attributes) }
            try verify(blob, digest, "\(name)")
            try destination.area.makeDirectories(for: name, durably: true)
            if let area = destination.area as? any PublishingBlobArea {
                let epoch = try area.publish(blobName, as: name, replaces: false)
                try area.synchronizePublication(name, of: blob, since: epoch)
            }
            let copied = try translating("read attributes") { () throws(Errno) in try blob.attributes() }
            // The ledger of a shared storage has only a weak reference to the blob, so the blob must exist until the
            // commit.
            try withExtendedLifetime(blob) { () throws(StoreError) in
                try record(name, found, copied, blob: blobName)
            }
        } catch {
            _ = try? destination.area.remove(blobName)
            throw error == .preconditionFailed
                ? .invalidState("the destination has another file with this name") : error
        }
        report.files += 1
        report.bytes += attributes.size
    }

    /// The attributes of this file in the destination; `nil` if the destination does not have it.
    private func present(
        _ name: PublishedName, _ attributes: PublishedFile.Attributes
    ) throws(StoreError) -> PublishedFile.Attributes? {
        try destination.area.requirePossible(name)
        do throws(StoreError) {
            let present = try destination.area.openPublished(name).file.attributes
            guard present.size == attributes.size, present.publicationTime == attributes.publicationTime else {
                throw .invalidState("the destination has another file with this name")
            }
            return present
        } catch {
            if error == .notFound || error == .parentIsFile { return nil }
            throw error
        }
    }

    /// Records the principal and the metadata of a file, if the source has a record of it. If the destination's catalog
    /// publishes files, this also publishes the file.
    private func record(
        _ name: PublishedName, _ found: PublishedBlob, _ attributes: PublishedFile.Attributes, blob: String
    ) throws(StoreError) {
        var change: CatalogChange?
        if var copy = try source.catalog.file(name.path), copy.describes(found) {
            (copy.size, copy.modifiedSeconds) = (attributes.size, attributes.modifiedSeconds)
            copy.identity = attributes.publicationTime
            change = .recordFile(copy, ending: nil)
        }
        if !(destination.area is any PublishingBlobArea) {
            change = .naming(change ?? .probe, .file(name, attributes, blob: blob, replaced: nil))
        }
        if let change { try destination.catalog.commit(change) }
    }

    // MARK: Uploads

    private mutating func copyUploads() throws(StoreError) {
        var last: UploadID?
        while true {
            let page = try source.catalog.rows(after: last, limit: Self.pageSize)
            guard let end = page.last else { return }
            var finished: [CatalogChange] = []
            for row in page {
                if let present = try destination.catalog.row(row.id) {
                    report.present += 1
                    if present.isUnfinished, !row.isUnfinished || row.offset > present.offset {
                        report.problems.append(
                            "\(row.id): a server has continued this upload since an earlier run, and the earlier copy remains in"
                                + " the destination; copy to an empty destination")
                    }
                } else if row.isUnfinished {
                    do throws(StoreError) { try copyUpload(row) } catch {
                        guard error.isAboutOneFile else { throw error }
                        report.problems.append("\(row.id): \(error)")
                    }
                } else {
                    finished.append(.insert(shifted(row)))
                }
            }
            for outcome in destination.catalog.commit(finished) { _ = try outcome.get() }
            report.responses += finished.count
            progress(report)
            last = end.id
        }
    }

    private mutating func copyUpload(_ row: CatalogRow) throws(StoreError) {
        // The name is only used inside a store. An interrupted run may have left bytes under it.
        try translating("remove earlier bytes") { () throws(Errno) in try destination.area.remove(row.blob) }
        let blob = try create(row.blob)
        let bytes = try translating("open the content of an upload") { () throws(Errno) in
            row.offset > 0 ? try source.area.open(row.blob) : nil
        }
        let digest = try copy(to: blob) { (buffer, offset) throws(StoreError) in
            guard let bytes, offset < row.offset else { return 0 }
            let part = UnsafeMutableRawBufferPointer(
                rebasing: buffer.prefix(Int(min(row.offset - offset, Int64(buffer.count)))))
            let count = try translating("read the content of an upload") { () throws(Errno) in
                try bytes.read(into: part, at: offset)
            }
            if count == 0 { throw .stateLost }
            return count
        }
        try translating("synchronize the content of an upload") { () throws(Errno) in
            try blob.synchronize(including: .name)
        }
        try verify(blob, digest, "\(row.id)")
        // As in `copyFile`, the blob must exist until the commit.
        _ = try withExtendedLifetime(blob) { () throws(StoreError) in
            try destination.catalog.commit(.insert(shifted(row)))
        }
        // A server that already uses the destination can continue the upload.
        destination.catalog.release(row.id, fence: 1)
        report.uploads += 1
        report.bytes += row.offset
    }

    /// The row with the times of the other clock.
    private func shifted(_ row: CatalogRow) -> CatalogRow {
        var row = row
        let shift = destination.time - source.time
        row.createdAt += shift
        row.upload.expiresAt = row.upload.expiresAt.map { $0 + shift }
        row.expiresAt = row.expiresAt.map { $0 + shift }
        return row
    }

    // MARK: Events

    /// Copies the events last, so that none is delivered before its upload can be found.
    private mutating func copyEvents() throws(StoreError) {
        var present: Set<String> = []
        try forEachEvent(of: destination) { page in present.formUnion(page.map(\.id)) }
        let (destination, known) = (destination, present)
        var copied = 0
        try forEachEvent(of: source) { (page) throws(StoreError) in
            let missing = page.filter { !known.contains($0.id) }
            if missing.isEmpty { return }
            try destination.catalog.commit(.reporting(.probe, missing))
            copied += missing.count
        }
        report.events = copied
        report.present += present.count
    }

    private func forEachEvent(
        of place: Place, _ body: ([UploadEvent]) throws(StoreError) -> Void
    ) throws(StoreError) {
        var last: Int64 = 0
        while true {
            let page = try place.catalog.events(after: last, limit: Self.pageSize)
            guard let end = page.last else { return }
            try body(page.map(\.event))
            last = end.number
        }
    }

    // MARK: Bytes

    private func create(_ name: String) throws(StoreError) -> any Blob {
        try translating("create a file") { () throws(Errno) in try destination.area.create(name) }
    }

    /// - Parameter read: copies bytes from an offset on into a buffer, and returns their number, 0 at the end.
    /// - Returns: the SHA-256 of the bytes.
    private func copy(
        to blob: any Blob, _ read: (UnsafeMutableRawBufferPointer, Int64) throws(StoreError) -> Int
    ) throws(StoreError) -> [UInt8] {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.pieceSize, alignment: 16)
        defer { buffer.deallocate() }
        var digest = RunningDigest(.sha256)
        var offset: Int64 = 0
        while true {
            let count = try read(buffer, offset)
            if count == 0 { return digest.finalized() }
            var remaining = UnsafeRawBufferPointer(rebasing: buffer[..<count])
            digest.update(remaining)
            while !remaining.isEmpty {
                let written = try translating("write a file") { () throws(Errno) in
                    try blob.write(remaining, at: offset)
                }
                if written == 0 { blob.awaitRoom() }
                remaining = UnsafeRawBufferPointer(rebasing: remaining[written...])
                offset += Int64(written)
            }
        }
    }

    private func verify(_ blob: any Blob, _ digest: [UInt8], _ name: String) throws(StoreError) {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.pieceSize, alignment: 16)
        defer { buffer.deallocate() }
        blob.dropCopy()
        var copied = RunningDigest(.sha256)
        var offset: Int64 = 0
        while true {
            let count = try translating("read a file again") { () throws(Errno) in
                try blob.read(into: buffer, at: offset)
            }
            if count == 0 { break }
            copied.update(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            offset += Int64(count)
        }
        guard copied.finalized() == digest else { throw .invalidState("the copy of \(name) has another SHA-256") }
    }
}

extension StoreError {
    /// Whether other files and uploads can be copied nevertheless.
    fileprivate var isAboutOneFile: Bool {
        switch self {
        case .invalidState, .notFound, .stateLost, .targetIsDirectory, .targetIsSpecial, .parentIsFile, .pathTooLong:
            true
        default: false
        }
    }
}
