import SystemCalls

/// One lock a published name, held while the file of that name is evaluated and changed, and the publications that were
/// decided for a name and have not come to their end.
final class PathLocks: Sendable {
    private struct State {
        var held: Set<PublishedName> = []
        var unsettled: [PublishedName: UploadID] = [:]
    }

    private let state = Monitor(State())

    func withLock<Result>(_ name: PublishedName, _ body: () throws(StoreError) -> Result) throws(StoreError) -> Result {
        state.waitForever { state in state.held.insert(name).inserted ? () : nil }
        defer {
            state.withLock { _ = $0.held.remove(name) }
            state.notifyAll()
        }
        return try body()
    }

    /// Whether no name is locked.
    var isEmpty: Bool { state.withLock { $0.held.isEmpty } }

    /// The upload whose publication under this name has been decided.
    func unsettled(_ name: PublishedName) -> UploadID? { state.withLock { $0.unsettled[name] } }

    /// Called while the name is locked.
    func setUnsettled(_ name: PublishedName, _ id: UploadID) { state.withLock { $0.unsettled[name] = id } }

    func clearUnsettled(_ name: PublishedName, _ id: UploadID) {
        state.withLock { state in
            if state.unsettled[name] == id { state.unsettled[name] = nil }
        }
    }
}
