import SystemCalls

extension UploadStore {
    /// Opens the store of a data directory, and creates the directory if it is missing. Rows are stored in SQLite,
    /// bytes in files.
    ///
    /// - Parameter root: the path of the data directory. All its parts must be in one file system. Only one store at a
    ///   time can use it.
    /// - Throws: `inUse`, `newerSchema`, `foreignData`, `damaged` or `unusableRoot` if the directory cannot be used, `io` if a
    ///   system call fails, and `cannotStartThread`.
    public static func open(root: String, configuration: StoreConfiguration = StoreConfiguration()) throws(StoreError)
        -> UploadStore
    {
        let directory = try DataDirectory(path: root)
        let catalog = try SQLiteCatalog(
            path: root + "/" + DataDirectory.catalogName, durability: configuration.durability)
        try directory.secure()
        let area = try startingThreads { () throws(Errno) in try FileBlobArea(directory) }
        return try UploadStore(catalog: catalog, area: area, location: root, configuration: configuration)
    }
}

extension UploadStore {
    /// Creates a store in memory, for tests. Its uploads and files are lost when it is closed.
    /// - Parameter configuration: the limits and times.
    /// - Throws: `StoreError` if the system cannot create a thread for the store.
    public static func inMemory(
        configuration: StoreConfiguration = StoreConfiguration()
    ) throws(StoreError) -> UploadStore {
        try UploadStore(catalog: MemoryCatalog(), area: MemoryBlobArea(), configuration: configuration)
    }
}

// The work at a start.
extension UploadStore {
    /// The pauses before a failed count is repeated, in nanoseconds. During a pause the log of the catalog grows.
    private static let countPauses: [Int64] = [100_000_000, 1_000_000_000, 5_000_000_000, 20_000_000_000]
    private static let recoveryPage = 200

    /// Completes the work that was interrupted when the last process ended. Nothing else is necessary before the store
    /// is used.
    func recover() throws(StoreError) {
        var last: UploadID?
        while true {
            let page = try catalog.processing(after: last, limit: Self.recoveryPage)
            guard let next = page.last else { return }
            for id in page { try recover(id) }
            last = next
        }
    }

    private func recover(_ id: UploadID) throws(StoreError) {
        do throws(StoreError) {
            try registry.withUpload(id) { (upload) throws(StoreError) in
                _ = try upload.claim(principal: nil, until: SystemClock.deadline(in: .seconds(60))) { _ in () }
            }
        } catch {
            // If an upload cannot be completed, the store is opened nevertheless: the sweep tries again.
            if error == .heldElsewhere { return }
            if let intent = (try? catalog.row(id))?.intent { context.pathLocks.setUnsettled(intent.name, id) }
        }
    }

    /// If the last process did not stop properly, counts the totals and checks the catalog in the background.
    func startVerification(shouldCount: Bool) throws(StoreError) {
        guard shouldCount || catalog.isVerificationNeeded else { return }
        let thread = try startingThreads { () throws(Errno) in
            try WorkerThread(name: "verify", shouldYield: true) { [self] in verify(shouldCount: shouldCount) }
        }
        verification.withLock { $0 = thread }
    }

    private func verify(shouldCount: Bool) {
        do throws(StoreError) {
            if shouldCount {
                do throws(StoreError) { try count() } catch {
                    ledger.fail(error)
                    report(error)
                }
            }
            try catalog.verify()
        } catch {
            report(error)
        }
    }

    /// Counts the totals. Failures other than damage, such as an error of the disk or missing memory, are retried up to
    /// four times.
    private func count() throws(StoreError) {
        var pauses = Self.countPauses[...]
        while true {
            do throws(StoreError) {
                let totals = try catalog.countTotals()
                finished.addCounted(complete: totals.complete, invalid: totals.invalid)
                ledger.addCounted(totals.usage)
                return
            } catch {
                guard !error.isDamage, error != .superseded, let pause = pauses.popFirst() else { throw error }
                if registry.waitForClosing(nanoseconds: pause) { throw .superseded }
            }
        }
    }
}
