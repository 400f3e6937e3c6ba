import SystemCalls

extension UploadStore {
    /// The number of uploads whose publication waits for a common synchronization.
    package var waitingPublications: Int { context.newFiles.counts.waiting }

    private static let pageSize = 200
    private static let inspectionInterval: Int64 = 900_000_000_000

    /// Checks one page of the uploads, the content files or the records of published files.
    ///
    /// - Returns: false if there is nothing to check now.
    func inspect(_ inspection: inout StoreInspection, _ report: inout SweepReport) -> Bool {
        if registry.isClosed { return false }
        do throws(StoreError) {
            switch inspection.stage {
            case .uploads(let last): inspection.stage = try inspectUploads(after: last, &report)
            case .bytes(let names): inspection.stage = try inspectBytes(names, &report)
            case .files(let last): inspection.stage = try inspectFiles(after: last, &report)
            case .done(let time):
                if SystemClock.monotonicNanoseconds() < time { return false }
                inspection.stage = .uploads(after: nil)
            }
        } catch {
            report.failures.append(error)
            inspection.stage = Self.done
            return false
        }
        return true
    }

    private static var done: StoreInspection.Stage {
        .done(until: SystemClock.monotonicNanoseconds() + inspectionInterval)
    }

    /// Checks whether the bytes of uploads exist. Uploads in use are skipped, because they were verified when they were
    /// loaded.
    private func inspectUploads(
        after last: UploadID?, _ report: inout SweepReport
    ) throws(StoreError) -> StoreInspection.Stage {
        let page = try catalog.receiving(after: last, limit: Self.pageSize)
        guard let next = page.last else {
            return .bytes(try translating("list the content files") { () throws(Errno) in try area.names() })
        }
        for entry in page where entry.offset > 0 && registry.current(entry.id) == nil {
            let size = try translating("read the size of a content file") { () throws(Errno) in
                try area.size(of: entry.blob)
            }
            if let size, size >= entry.offset { continue }
            do throws(StoreError) {
                // The claim loads the upload, detects that bytes are missing, and makes the upload invalid.
                try registry.withUpload(entry.id) { (upload) throws(StoreError) in
                    _ = try upload.claim(principal: nil, until: SystemClock.deadline(in: .zero)) { _ in () }
                }
            } catch {
                if error != .notFound { report.failures.append(error) }
            }
        }
        return .uploads(after: next.id)
    }

    private func inspectBytes(
        _ names: @escaping BlobNames, _ report: inout SweepReport
    ) throws(StoreError) -> StoreInspection.Stage {
        for _ in 0..<Self.pageSize {
            guard let name = try translating("list the content files", { () throws(Errno) in try names() }) else {
                return .files(after: "")
            }
            // The checks need this order. A name is in `newBlobs` at least until the catalog contains its row. In the
            // other order, the row could be written and the name removed from `newBlobs` between the checks.
            if context.newBlobs.contains(name) { continue }
            if try catalog.needsBlob(name) { continue }
            try translating("remove a content file") { () throws(Errno) in try area.remove(name) }
            report.orphans += 1
        }
        return .bytes(names)
    }

    /// Removes the records of files that were deleted by hand, so that they no longer count toward a quota.
    private func inspectFiles(
        after last: String, _ report: inout SweepReport
    ) throws(StoreError) -> StoreInspection.Stage {
        // In a shared catalog the record of a file is the file itself.
        if catalog.isShared { return Self.done }
        let page = try catalog.files(after: last, limit: Self.pageSize)
        for record in page {
            guard let name = PublishedName(path: record.name) else {
                continue
            }
            do throws(StoreError) {
                if try removeRecordIfMissing(name) { report.missingFiles += 1 }
            } catch {
                report.failures.append(error)
            }
        }
        return page.last.map { .files(after: $0.name) } ?? Self.done
    }

    private func removeRecordIfMissing(_ name: PublishedName) throws(StoreError) -> Bool {
        try context.pathLocks.withLock(name) { () throws(StoreError) in
            try area.isPublished(name) ? false : try removeFileRecord(name)
        }
    }

    /// Removes the record of a file that does not exist, and its size from the quota. The caller must hold the path
    /// lock of the name.
    func removeFileRecord(_ name: PublishedName) throws(StoreError) -> Bool {
        guard let record = try catalog.file(name.path) else { return false }
        try catalog.commit(.removeFiles([record.name]))
        ledger.addPublished(-record.size, for: record.principal)
        return true
    }
}
