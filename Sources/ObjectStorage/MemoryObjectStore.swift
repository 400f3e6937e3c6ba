import SystemCalls

/// Objects in memory, for tests. A function of the test decides which operations fail, and how.
package final class MemoryObjectStore: ObjectStore {
    /// One call of a function of ``ObjectStore``.
    package enum Operation: Sendable, Hashable {
        /// A call of `put` or `create`.
        case put(key: String, count: Int)
        case get(key: String, Range<Int64>)
        case delete([String])
        case list(prefix: String, after: String?)
    }

    package enum Fault: Sendable, Hashable {
        /// The operation has no effect.
        case fail(ObjectError)
        /// The operation has its effect, but its caller gets ``ObjectError/unavailable(_:)``.
        case loseResponse
        /// The caller gets ``ObjectError/unavailable(_:)``, and the operation has its effect during
        /// ``performPostponed()``, like a request for whose response the client does not wait any more.
        case postpone
    }

    private struct Object {
        var content: [UInt8]
        var lastModified: Int64
    }

    private struct State {
        var objects: [String: Object] = [:]
        var fault: @Sendable (Operation) -> Fault? = { _ in nil }
        var operations: [Operation] = []
        var postponed: [@Sendable (inout State) -> Void] = []
    }

    private let state = Monitor(State())
    /// Seconds since 1970.
    private let clock: @Sendable () -> Int64

    /// - Parameter clock: the clock of the storage, in seconds since 1970.
    package init(clock: @escaping @Sendable () -> Int64 = SystemClock.realtimeSeconds) { self.clock = clock }

    /// Sets the function that is called before each operation, on the thread of the caller. If it blocks, the operation
    /// stalls.
    package func setFault(_ fault: @escaping @Sendable (Operation) -> Fault?) { state.withLock { $0.fault = fault } }

    /// Performs the postponed operations, in their order.
    package func performPostponed() {
        state.withLock { state in
            let postponed = state.postponed
            state.postponed = []
            for effect in postponed { effect(&state) }
        }
    }

    /// All operations so far, including failed ones, in the order of their calls.
    package var operations: [Operation] { state.withLock { $0.operations } }

    /// The contents of all objects by their keys.
    package var contents: [String: [UInt8]] { state.withLock { $0.objects.mapValues(\.content) } }

    // MARK: ObjectStore

    package func put(_ key: String, _ content: [UInt8], until deadline: Int64) throws(ObjectError) {
        let clock = clock
        try perform(.put(key: key, count: content.count)) { state in
            state.objects[key] = Object(content: content, lastModified: clock())
        }
    }

    package func create(_ key: String, _ content: [UInt8], until deadline: Int64) throws(ObjectError) -> Bool {
        let clock = clock
        let isNew = Monitor(false)
        try perform(.put(key: key, count: content.count)) { state in
            if state.objects[key] != nil { return }
            state.objects[key] = Object(content: content, lastModified: clock())
            isNew.withLock { $0 = true }
        }
        return isNew.withLock { $0 }
    }

    package func get(
        _ key: String, _ range: Range<Int64>, into buffer: UnsafeMutableRawBufferPointer, until deadline: Int64
    ) throws(ObjectError) -> Int {
        try perform(.get(key: key, range)) { _ in }
        guard let content = state.withLock({ $0.objects[key]?.content }) else { throw .notFound }
        let present = content[(Int(range.lowerBound)..<Int(range.upperBound)).clamped(to: content.indices)]
        buffer.copyBytes(from: present)
        return present.count
    }

    package func delete(_ keys: [String]) throws(ObjectError) {
        try perform(.delete(keys)) { state in for key in keys { state.objects[key] = nil } }
    }

    package func list(prefix: String, after: String?, limit: Int) throws(ObjectError) -> [ObjectListing] {
        try perform(.list(prefix: prefix, after: after)) { _ in }
        let objects = state.withLock { $0.objects }
        let keys = objects.keys.filter { key in
            key.utf8.starts(with: prefix.utf8) && (after.map { $0.utf8.lexicographicallyPrecedes(key.utf8) } ?? true)
        }
        let sorted = keys.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
        return sorted.prefix(limit).compactMap { key in
            objects[key].map {
                ObjectListing(key: key, size: Int64($0.content.count), lastModified: $0.lastModified)
            }
        }
    }

    private func perform(_ operation: Operation, _ effect: @escaping @Sendable (inout State) -> Void)
        throws(ObjectError)
    {
        let fault = state.withLock { state in
            state.operations.append(operation)
            return state.fault
        }
        switch fault(operation) {
        case nil: state.withLock { effect(&$0) }
        case .fail(let error): throw error
        case .loseResponse:
            state.withLock { effect(&$0) }
            throw .unavailable("the response was lost")
        case .postpone:
            state.withLock { $0.postponed.append(effect) }
            throw .unavailable("no response in time")
        }
    }
}
