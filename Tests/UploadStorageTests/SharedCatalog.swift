import SystemCalls

@testable import UploadStorage

/// The holds of one catalog in memory that several stores share.
final class SharedHolds: Sendable {
    struct Node {
        var requested: (@Sendable (UploadID) -> Void)?
        var lost: (@Sendable ([UploadID]) -> Void)?
        /// Whether other nodes may become the holder of the uploads of this node.
        var isExpired = false
        /// Whether the node receives no requests, as if its process were stopped.
        var isStopped = false
    }

    struct Hold: Equatable {
        var node: Int
        var fence: Int64
    }

    /// A fault of the next transaction that publishes a file.
    enum Fault {
        case none, notMade
        /// The response to the transaction is lost, and then the responses to this number of reads.
        case responseLost(failingReads: Int)
    }

    struct State {
        var fault = Fault.none
        var failingReads = 0
        var nodes: [Int: Node] = [:]
        var holds: [UploadID: Hold] = [:]
        var fences: [UploadID: Int64] = [:]
    }

    let catalog = MemoryCatalog()
    /// The area whose files this catalog publishes.
    let area = MemoryBlobArea()
    let state = Monitor(State())

    func setFault(_ fault: Fault) { state.withLock { $0.fault = fault } }

    /// Ends the failures of reads.
    func connect() { state.withLock { $0.failingReads = 0 } }

    func beginReading() throws(StoreError) {
        let fails = state.withLock { state in
            defer { state.failingReads = max(0, state.failingReads - 1) }
            return state.failingReads > 0
        }
        if fails { throw .unavailable("test") }
    }

    /// Ends the holds of a node without a notification.
    func expire(_ node: Int) {
        state.withLock { $0.nodes[node]?.isExpired = true }
        state.notifyAll()
    }

    func stop(_ node: Int) { state.withLock { $0.nodes[node]?.isStopped = true } }

    /// Reports to an expired node that it has lost its holds.
    func report(_ node: Int) {
        let (lost, ids) = state.withLock { state in
            (state.nodes[node]?.lost, state.holds.filter { $0.value.node == node }.map(\.key))
        }
        lost?(ids)
    }

    func holder(of id: UploadID) -> Int? { state.withLock { $0.holds[id]?.node } }
}

/// The catalog of one node.
final class NodeCatalog: UploadCatalog {
    private let shared: SharedHolds
    private let node: Int
    private var base: MemoryCatalog { shared.catalog }

    init(_ shared: SharedHolds, node: Int) {
        (self.shared, self.node) = (shared, node)
        shared.state.withLock { $0.nodes[node] = SharedHolds.Node() }
    }

    let isShared = true

    func commit(_ changes: [CatalogChange]) -> [Result<RemovedRows, StoreError>] {
        changes.map { change in
            shared.state.withLock { state -> Result<RemovedRows, StoreError> in
                guard state.allows(change, by: node) else {
                    if case .delete = change { return .failure(.heldElsewhere) }
                    return .failure(.superseded)
                }
                if state.failingReads > 0 { return .failure(.unavailable("test")) }
                guard case .naming(let inner, .file(let name, _, let blob, let replaced)) = change else {
                    let result = base.commit([change])[0]
                    if case .success = result { state.note(change, by: node) }
                    return result
                }
                defer { state.fault = .none }
                if case .notMade = state.fault { return .failure(.unavailable("test")) }
                let current = try? shared.area.openPublished(name)
                guard (current == nil) == (replaced == nil) else { return .failure(.preconditionFailed) }
                let result = base.commit([inner])[0]
                guard case .success = result else { return result }
                do throws(StoreError) {
                    _ = try shared.area.publish(blob, as: name, replaces: replaced != nil)
                } catch { return .failure(error) }
                state.note(change, by: node)
                if case .responseLost(let failingReads) = state.fault {
                    state.failingReads = failingReads
                    return .failure(.unavailable("test"))
                }
                return result
            }
        }
    }

    func acquire(_ id: UploadID, until deadline: Int64) throws(StoreError) -> HeldRow? {
        while true {
            // A finished upload does not change, and has no holder.
            if let row = try base.row(id), !row.isUnfinished { return HeldRow(row: row, fence: 0) }
            let request = shared.state.withLock { state -> (@Sendable (UploadID) -> Void)?? in
                let holder = state.holds[id]
                let isFree = holder.map { $0.node == node || state.nodes[$0.node]?.isExpired ?? true } ?? true
                if isFree {
                    state.fences[id, default: 1] += 1
                    state.holds[id] = SharedHolds.Hold(node: node, fence: state.fences[id] ?? 1)
                    return nil
                }
                let other = holder.flatMap { state.nodes[$0.node] }
                return .some(other?.isStopped == true ? nil : other?.requested)
            }
            if request == nil { break }
            request??(id)
            let now = SystemClock.monotonicNanoseconds()
            if now >= deadline { throw .heldElsewhere }
            _ = shared.state.wait(until: min(deadline, now + 20_000_000)) { state -> Void? in
                state.holds[id] == nil ? () : nil
            }
        }
        guard let row = try base.row(id) else { return nil }
        return HeldRow(row: row, fence: shared.state.withLock { $0.fences[id] ?? 1 })
    }

    func release(_ id: UploadID, fence: Int64) {
        shared.state.withLock { state in
            if state.holds[id] == SharedHolds.Hold(node: node, fence: fence) { state.holds[id] = nil }
        }
        shared.state.notifyAll()
    }

    func holds(_ id: UploadID, fence: Int64) -> Bool {
        shared.state.withLock { state in
            return state.nodes[node]?.isExpired == false
                && state.holds[id] == SharedHolds.Hold(node: node, fence: fence)
        }
    }

    func onHolds(
        requested: @escaping @Sendable (UploadID) -> Void, lost: @escaping @Sendable ([UploadID]) -> Void
    ) {
        shared.state.withLock { state in
            state.nodes[node]?.requested = requested
            state.nodes[node]?.lost = lost
        }
    }

    func sharedUsage(of principal: String?) throws(StoreError) -> [String: Usage] { base.savedTotals?.usage ?? [:] }
    var savedTotals: CatalogTotals? { CatalogTotals() }
    func countTotals() throws(StoreError) -> CatalogTotals { CatalogTotals() }
    func stopCounting() {}
    func close(saving totals: CatalogTotals?) {
        shared.state.withLock { state in
            state.holds = state.holds.filter { $0.value.node != node }
            state.nodes[node] = nil
        }
    }
    var isVerificationNeeded: Bool { false }
    var damage: StoreError? { nil }
    func verify() throws(StoreError) {}
    func row(_ id: UploadID) throws(StoreError) -> CatalogRow? {
        try shared.beginReading()
        return try base.row(id)
    }
    func rows(after id: UploadID?, limit: Int) throws(StoreError) -> [CatalogRow] {
        try base.rows(after: id, limit: limit)
    }
    func processing(after id: UploadID?, limit: Int) throws(StoreError) -> [UploadID] {
        try base.processing(after: id, limit: limit)
    }
    func processingCount() throws(StoreError) -> Int { try base.processingCount() }
    func receiving(after id: UploadID?, limit: Int) throws(StoreError) -> [DurableBytes] {
        try base.receiving(after: id, limit: limit)
    }
    func expired(at now: Int64, limit: Int) throws(StoreError) -> [UploadID] { try base.expired(at: now, limit: limit) }
    func needsBlob(_ name: String) throws(StoreError) -> Bool { try base.needsBlob(name) }
    func file(_ name: String) throws(StoreError) -> FileRecord? { try base.file(name) }
    func files(after name: String, limit: Int) throws(StoreError) -> [FileRecord] { [] }
    func isExpiring(after time: Int64) throws(StoreError) -> Bool { try base.isExpiring(after: time) }
    func timeMark() throws(StoreError) -> LifetimeClock.Mark? { nil }
    func sizeInBytes() throws(StoreError) -> Int64 { 0 }
    func events(after number: Int64, limit: Int) throws(StoreError) -> [OutboxEntry] { [] }
    func retriedEvents(limit: Int) throws(StoreError) -> [OutboxEntry] { [] }
    func hasEvent(_ number: Int64) throws(StoreError) -> Bool { false }
    func countEvents() throws(StoreError) -> OutboxStatistics { OutboxStatistics() }
    func onEvents(_ body: @escaping @Sendable () -> Void) {}
    var statistics: CatalogStatistics { base.statistics }
}

extension SharedHolds.State {
    func allows(_ change: CatalogChange, by node: Int) -> Bool {
        guard let isExpired = nodes[node]?.isExpired, !isExpired else { return false }
        func isHeld(_ id: UploadID) -> Bool { holds[id]?.node == node }
        return switch change {
        case .advance(let advance): isHeld(advance.id)
        case .markProcessing(let id, _), .recordIntent(let id, _, _), .withdraw(let id, _): isHeld(id)
        case .complete(let completion): isHeld(completion.id)
        case .invalidate(let invalidation): isHeld(invalidation.id)
        case .delete(let removals): removals.allSatisfy { holds[$0.id] == nil || isHeld($0.id) }
        case .reporting(let change, _), .naming(let change, _): allows(change, by: node)
        default: true
        }
    }

    /// A new row belongs to the node that has inserted it.
    mutating func note(_ change: CatalogChange, by node: Int) {
        switch change {
        case .insert(let row, _):
            fences[row.id] = 1
            holds[row.id] = SharedHolds.Hold(node: node, fence: 1)
        case .reporting(let change, _), .naming(let change, _): note(change, by: node)
        default: break
        }
    }
}

/// The blob area of one node. The catalog publishes its files.
final class NodeArea: BlobArea {
    private let shared: SharedHolds
    private var base: MemoryBlobArea { shared.area }

    init(_ shared: SharedHolds) { self.shared = shared }

    func create(_ name: String) throws(Errno) -> any Blob { try base.create(name) }
    func open(_ name: String) throws(Errno) -> any Blob { try base.open(name) }
    func remove(_ name: String) throws(Errno) { try base.remove(name) }
    func retainedCount() throws(Errno) -> Int { try base.retainedCount() }
    func names() throws(Errno) -> BlobNames { { () throws(Errno) -> String? in nil } }
    func size(of name: String) throws(Errno) -> Int64? { try base.size(of: name) }
    func space() throws(Errno) -> FileSystemSpace { try base.space() }
    func probe() throws(Errno) { try base.probe() }
    func openPublished(_ name: PublishedName) throws(StoreError) -> PublishedBlob {
        try shared.beginReading()
        let found = try base.openPublished(name)
        let fields = try shared.catalog.file(name.path)?.fields ?? [:]
        return PublishedBlob(identity: found.identity, file: found.file.described(by: fields))
    }
    func isPublished(_ name: PublishedName) throws(StoreError) -> Bool { try base.isPublished(name) }
    func makeDirectories(for name: PublishedName, durably: Bool) throws(StoreError) {
        try base.makeDirectories(for: name, durably: durably)
    }
    func openDirectory(_ directory: PublishedName.Directory) throws(StoreError) -> any PublishedDirectory {
        try base.openDirectory(directory)
    }
    func removePublished(_ name: PublishedName, tagged tag: String) throws(StoreError) {
        try base.removePublished(name, tagged: tag)
    }
    func close() {}
}
