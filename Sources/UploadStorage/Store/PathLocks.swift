import SystemCalls

/// One lock a published name, held while the file of that name is judged and changed.
final class PathLocks: Sendable {
    private let held = Monitor<Set<PublishedName>>([])

    func withLock<Result>(_ name: PublishedName, _ body: () throws(StoreError) -> Result) throws(StoreError) -> Result {
        held.waitForever { names in names.insert(name).inserted ? () : nil }
        defer {
            held.withLock { _ = $0.remove(name) }
            held.notifyAll()
        }
        return try body()
    }
}
