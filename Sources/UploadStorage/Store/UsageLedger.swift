import Synchronization
import SystemCalls

/// The usage of each principal (uploads, bytes), in memory. While the lock of the ledger is held, no other lock is
/// acquired.
final class UsageLedger: Sendable {
    private let maxUploads: Int?
    private let quota: Int64?
    private let state: Monitor<State>
    /// A copy of `State.isCounted` that is read without the lock.
    private let isCounted: Atomic<Bool>

    private struct State {
        /// Excludes uploads and files from before the start until ``addCounted(_:)`` adds them.
        var usage: [String: Usage]
        var isCounted: Bool
        var failure: StoreError?
        /// Whether a file was replaced whose size is unknown, so the published bytes are not exact.
        var isApproximate = false

        var isExact: Bool { isCounted && failure == nil && !isApproximate }
    }

    /// - Parameters:
    ///   - usage: the usage by everything in the store; nil if ``addCounted(_:)`` or ``fail(_:)`` is called later. Callers
    ///     that need the numbers wait for that call.
    ///   - isShared: whether the catalog checks the limits, for several stores.
    init(_ usage: [String: Usage]?, configuration: StoreConfiguration, isShared: Bool = false) {
        maxUploads = isShared ? nil : configuration.maxUploadsPerPrincipal
        quota = isShared ? nil : configuration.quotaPerPrincipal
        state = Monitor(State(usage: usage ?? [:], isCounted: usage != nil))
        isCounted = Atomic(usage != nil)
    }

    /// Adds the usage at the time when the store was opened. Later changes are counted already.
    func addCounted(_ counted: [String: Usage]) {
        state.withLock { state in
            for (principal, usage) in counted {
                var entry = state.usage[principal] ?? Usage()
                entry.uploads += usage.uploads
                entry.reservedBytes = entry.reservedBytes.addingReportingOverflow(usage.reservedBytes).partialValue
                entry.publishedBytes += usage.publishedBytes
                state.usage[principal] = entry
            }
            state.isCounted = true
            isCounted.store(true, ordering: .releasing)
        }
        state.notifyAll()
    }

    /// Waits until the count of the start is complete. Returns immediately if there are no limits. The caller must hold
    /// no lock.
    func waitUntilCounted() {
        if !canReserve { withCounted { _ in () } }
    }

    /// Whether ``reserve(_:for:)`` can be called.
    var canReserve: Bool { hasNoLimits || isCounted.load(ordering: .acquiring) }

    private var hasNoLimits: Bool { maxUploads == nil && quota == nil }

    /// Records that the count has failed: from now on ``begin(_:reserving:counts:)`` and ``reserve(_:for:)`` throw the
    /// error.
    func fail(_ error: StoreError) {
        state.withLock { state in
            state.failure = error
            state.isCounted = true
            isCounted.store(true, ordering: .releasing)
        }
        state.notifyAll()
    }

    /// Whether the numbers include everything in the store.
    var isExact: Bool { state.withLock { $0.isExact } }

    /// The usage of every principal.
    var entries: [String: Usage] { withCounted { $0.usage } }

    /// The usage of every principal; nil until it is counted, and if the count has failed.
    var entriesIfCounted: [String: Usage]? {
        state.withLock { $0.isCounted && $0.failure == nil ? $0.usage : nil }
    }

    private func withCounted<Result>(_ body: (inout State) -> Result) -> Result {
        state.waitForever { state -> Result? in state.isCounted ? body(&state) : nil }
    }

    func usage(of principal: String) -> Usage { withCounted { $0.usage[principal] ?? Usage() } }

    /// The total usage of all principals; nil until it is counted, and if the count has failed.
    var total: Usage? {
        state.withLock { state in
            guard state.isExact else { return nil }
            return state.usage.values.total
        }
    }

    /// Reserves bytes for a new upload, and counts the upload if `counts` is true. Throws if a limit would be exceeded.
    func begin(_ principal: String, reserving bytes: Int64, counts isCounted: Bool) throws(StoreError) {
        waitUntilCounted()
        try admit(principal) { (entry) throws(StoreError) in
            if isCounted {
                if let maxUploads, entry.uploads >= maxUploads { throw .tooManyUploads(limit: maxUploads) }
                entry.uploads += 1
            }
            try add(bytes, to: &entry)
        }
    }

    /// Reserves more bytes for an existing upload. Call ``waitUntilCounted()`` first.
    func reserve(_ bytes: Int64, for principal: String) throws(StoreError) {
        try admit(principal) { (entry) throws(StoreError) in try add(bytes, to: &entry) }
    }

    private func admit(
        _ principal: String, _ body: (inout Usage) throws(StoreError) -> Void
    ) throws(StoreError) {
        try state.withLock { (state) throws(StoreError) in
            if let failure = state.failure { throw failure }
            var entry = state.usage[principal] ?? Usage()
            try body(&entry)
            state.usage[principal] = entry
        }
    }

    private func add(_ bytes: Int64, to entry: inout Usage) throws(StoreError) {
        let (reserved, overflow) = entry.reservedBytes.addingReportingOverflow(bytes)
        if let quota, bytes > 0, overflow || reserved > quota - entry.publishedBytes {
            throw .quotaExceeded(limit: quota)
        }
        entry.reservedBytes = overflow ? .max : reserved
    }

    /// Releases bytes that an upload had reserved. If `counts` is true, the upload is not counted any more.
    func end(_ principal: String, releasing bytes: Int64, counts isCounted: Bool) {
        change(principal) { entry in
            if isCounted { entry.uploads -= 1 }
            entry.reservedBytes -= bytes
        }
    }

    /// Counts a plain upload as an upload from now on, and releases reserved bytes that it does not need.
    func keep(_ principal: String, releasing bytes: Int64) {
        change(principal) { entry in
            entry.uploads += 1
            entry.reservedBytes -= bytes
        }
    }

    func addPublished(_ bytes: Int64, for principal: String) {
        change(principal) { $0.publishedBytes += bytes }
    }

    /// Counts a published file.
    /// - Parameter removed: has the record that the file replaced; nil if that is unknown. Then the next start counts
    ///   everything again.
    func addPublished(_ file: FileRecord, replacing removed: RemovedRows?) {
        addPublished(file.size, for: file.principal)
        if let replaced = removed?.file { addPublished(-replaced.size, for: replaced.principal) }
        if removed == nil { state.withLock { $0.isApproximate = true } }
    }

    private func change(_ principal: String, _ body: (inout Usage) -> Void) {
        state.withLock { state in
            var entry = state.usage[principal] ?? Usage()
            body(&entry)
            state.usage[principal] = entry == Usage() ? nil : entry
        }
    }
}

extension Collection<Usage> {
    /// The total of all principals.
    var total: Usage {
        reduce(into: Usage()) { total, entry in
            total.uploads += entry.uploads
            total.reservedBytes = total.reservedBytes.addingReportingOverflow(entry.reservedBytes).partialValue
            total.publishedBytes = total.publishedBytes.addingReportingOverflow(entry.publishedBytes).partialValue
        }
    }
}

/// The numbers of finished uploads whose response is kept. They are counted in memory, because counting rows takes
/// time.
final class FinishedUploads: Sendable {
    private let completeCount: Atomic<Int>
    private let invalidCount: Atomic<Int>
    private let lostCount = Atomic(0)

    init(complete: Int, invalid: Int) {
        completeCount = Atomic(complete)
        invalidCount = Atomic(invalid)
    }

    var complete: Int { completeCount.load(ordering: .relaxed) }
    var invalid: Int { invalidCount.load(ordering: .relaxed) }

    /// The number of uploads that have become invalid since the store was opened, because acknowledged bytes were
    /// missing.
    var lost: Int { lostCount.load(ordering: .relaxed) }

    func addLost() { lostCount.add(1, ordering: .relaxed) }

    func add(_ phase: UploadRecord.Phase) {
        switch phase {
        case .complete: completeCount.add(1, ordering: .relaxed)
        case .invalid: invalidCount.add(1, ordering: .relaxed)
        case .receiving, .processing: break
        }
    }

    func remove(_ removed: RemovedRows) {
        completeCount.subtract(removed.complete, ordering: .relaxed)
        invalidCount.subtract(removed.invalid, ordering: .relaxed)
    }

    /// Adds the finished uploads that the store contained when it was opened.
    func addCounted(complete: Int, invalid: Int) {
        completeCount.add(complete, ordering: .relaxed)
        invalidCount.add(invalid, ordering: .relaxed)
    }
}
