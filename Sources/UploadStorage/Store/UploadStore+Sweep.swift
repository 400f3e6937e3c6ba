import SystemCalls

extension UploadStore {
    private static let pageSize = 200

    /// Removes what has expired, ends what was interrupted and looks at some of the published files, others each time:
    /// takes no longer the more there are. Other work goes on meanwhile.
    public func sweepPart() -> SweepReport {
        var report = SweepReport()
        report.clockJump = observeClock()
        settleInterrupted(&report)
        sweepExpired(&report)
        let last = sweptFile.withLock { $0 }
        let next = sweepFiles(after: last, &report) ?? ""
        sweptFile.withLock { $0 = next }
        return report
    }

    /// Does all of that, and looks for bytes that nobody knows.
    public func sweep() -> SweepReport {
        var report = SweepReport()
        report.clockJump = observeClock()
        settleInterrupted(&report)
        sweepExpired(&report)
        sweepOrphans(&report)
        var last = Optional("")
        while let name = last { last = sweepFiles(after: name, &report) }
        return report
    }

    /// Publications that an error stopped after the decision, where no client has come back.
    private func settleInterrupted(_ report: inout SweepReport) {
        do throws(StoreError) {
            for id in try catalogue.processing() where registry.current(id) == nil {
                do throws(StoreError) {
                    let upload = try registry.retain(id) { OpenUpload(id, store: self) }
                    defer { registry.drop(upload) }
                    let phase = try upload.claim(principal: nil, until: deadline(in: .zero)) { state in state.phase }
                    if case .complete = phase { report.settled += 1 }
                } catch {
                    if error != .notFound { report.failures.append(error) }
                }
            }
        } catch {
            report.failures.append(error)
        }
    }

    private func sweepExpired(_ report: inout SweepReport) {
        do throws(StoreError) {
            guard let now = expiryTime else { return }
            var failed: Set<UploadID> = []
            while true {
                let ids = try catalogue.expired(at: now, limit: Self.pageSize + failed.count)
                let due = ids.filter { !failed.contains($0) }
                if due.isEmpty { return }
                for id in due {
                    do throws(StoreError) {
                        if let wasUnfinished = try remove(id, expiredAt: now) {
                            report.expired += 1
                            report.unfinished += wasUnfinished ? 1 : 0
                        } else {
                            failed.insert(id)
                        }
                    } catch {
                        failed.insert(id)
                        if error != .notFound { report.failures.append(error) }
                    }
                }
            }
        } catch {
            report.failures.append(error)
        }
    }

    /// - Returns: whether nobody had finished it; nil where a target is at work, or it has just got a later time.
    private func remove(_ id: UploadID, expiredAt now: Int64) throws(StoreError) -> Bool? {
        let upload = try registry.retain(id) { OpenUpload(id, store: self) }
        defer { registry.drop(upload) }
        var wasUnfinished = false
        let removed = try upload.remove(principal: nil, until: deadline(in: .zero)) { record in
            wasUnfinished = record.phase == .receiving || record.phase == .processing
            return record.expiresAt.map { $0 <= now } ?? false
        }
        return removed == true ? wasUnfinished : nil
    }

    func sweepOrphans(_ report: inout SweepReport) {
        do throws(StoreError) {
            // Names first: a row that appears later has its bytes under a name that is not in this list, or is "new".
            let names = try translating("list bytes") { () throws(Errno) in try area.sizes() }.keys
            for name in names where !registry.isNewBlob(name) {
                if try catalogue.needsBlob(name) { continue }
                try translating("remove bytes") { () throws(Errno) in try area.remove(name) }
                report.orphans += 1
            }
        } catch {
            report.failures.append(error)
        }
    }

    /// Files that somebody removed by hand are nobody's to pay for any more.
    ///
    /// - Returns: the name of the last file looked at; nil after the last one of all.
    private func sweepFiles(after last: String, _ report: inout SweepReport) -> String? {
        let page: [FileRecord]
        do throws(StoreError) {
            page = try catalogue.files(after: last, limit: Self.pageSize)
        } catch {
            report.failures.append(error)
            return nil
        }
        for record in page {
            guard let name = PublishedName(segments: record.name.split(separator: "/").map(String.init)) else {
                continue
            }
            do throws(StoreError) {
                if try forgetIfVanished(name) { report.vanishedFiles += 1 }
            } catch {
                report.failures.append(error)
            }
        }
        return page.last?.name
    }

    private func forgetIfVanished(_ name: PublishedName) throws(StoreError) -> Bool {
        try pathLocks.withLock(name) { () throws(StoreError) in
            do throws(StoreError) {
                _ = try area.openPublished(name)
                return false
            } catch {
                let isAbsent = [.notFound, .parentIsFile, .targetIsDirectory, .targetIsSpecial].contains(error)
                guard isAbsent else { throw error }
            }
            return try forgetFile(name)
        }
    }

    /// Takes a file that is gone out of its owner's account. The path lock is held.
    func forgetFile(_ name: PublishedName) throws(StoreError) -> Bool {
        guard let record = try catalogue.file(name.path) else { return false }
        try catalogue.commit(.removeFiles([record.name]))
        ledger.addPublished(-record.size, for: record.principal)
        return true
    }
}
