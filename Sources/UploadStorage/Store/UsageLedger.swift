import SystemCalls

/// What every principal uses, in memory. The innermost lock: nothing else is called while it is held.
final class UsageLedger: Sendable {
    private let maxUploads: Int?
    private let quota: Int64?
    private let usage: Monitor<[String: Usage]>

    init(_ usage: [String: Usage], configuration: StoreConfiguration) {
        maxUploads = configuration.maxUploadsPerPrincipal
        quota = configuration.quotaPerPrincipal
        self.usage = Monitor(usage)
    }

    func usage(of principal: String) -> Usage { usage.withLock { $0[principal] ?? Usage() } }

    /// What all of them use together.
    var total: Usage {
        usage.withLock { usage in
            usage.values.reduce(into: Usage()) { total, entry in
                total.uploads += entry.uploads
                total.reservedBytes = total.reservedBytes.addingReportingOverflow(entry.reservedBytes).partialValue
                total.publishedBytes = total.publishedBytes.addingReportingOverflow(entry.publishedBytes).partialValue
            }
        }
    }

    /// Admits one more upload, or, where `counts` is false, bytes alone.
    func begin(_ principal: String, reserving bytes: Int64, counts: Bool) throws(StoreError) {
        try usage.withLock { (usage) throws(StoreError) in
            var entry = usage[principal] ?? Usage()
            if counts {
                if let maxUploads, entry.uploads >= maxUploads { throw .tooManyUploads(limit: maxUploads) }
                entry.uploads += 1
            }
            try add(bytes, to: &entry)
            usage[principal] = entry
        }
    }

    func reserve(_ bytes: Int64, for principal: String) throws(StoreError) {
        try usage.withLock { (usage) throws(StoreError) in
            var entry = usage[principal] ?? Usage()
            try add(bytes, to: &entry)
            usage[principal] = entry
        }
    }

    private func add(_ bytes: Int64, to entry: inout Usage) throws(StoreError) {
        let (reserved, overflow) = entry.reservedBytes.addingReportingOverflow(bytes)
        if let quota, bytes > 0, overflow || reserved > quota - entry.publishedBytes {
            throw .quotaExceeded(limit: quota)
        }
        entry.reservedBytes = overflow ? .max : reserved
    }

    /// Gives back what an upload had reserved, and its place.
    func end(_ principal: String, releasing bytes: Int64, counts: Bool) {
        change(principal) { entry in
            if counts { entry.uploads -= 1 }
            entry.reservedBytes -= bytes
        }
    }

    func addPublished(_ bytes: Int64, for principal: String) {
        change(principal) { $0.publishedBytes += bytes }
    }

    private func change(_ principal: String, _ body: (inout Usage) -> Void) {
        usage.withLock { usage in
            var entry = usage[principal] ?? Usage()
            body(&entry)
            usage[principal] = entry == Usage() ? nil : entry
        }
    }
}
