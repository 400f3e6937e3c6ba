import SystemCalls

/// The limit for the memory of all buffers of a process.
///
/// Bytes that are stored nowhere else are *unstored*. They can use all memory, except the part that copies of stored bytes
/// use at the moment. Copies use half of the memory at most, so that bytes can always be received.
final class BufferBudget: Sendable {
    private struct State {
        var unstored = 0
        /// The bytes of copies that are never dropped on request.
        var windows = 0
        /// The bytes of copies that their blob drops on request.
        var copies = 0
        var users: [ObjectIdentifier: User] = [:]
        /// The largest sum so far.
        var peak = 0

        var used: Int { unstored + windows + copies }
    }

    private struct User { weak var blob: ObjectBlob? }

    enum Use { case unstored, window, copy }

    private static let pause: Int64 = 50_000_000

    private let limit: Int
    private let state = Monitor(State())

    init(limit: Int) { self.limit = limit }

    /// The largest number of bytes that were in use at the same time.
    var peak: Int { state.withLock { $0.peak } }

    func add(_ blob: ObjectBlob) {
        state.withLock { $0.users[ObjectIdentifier(blob)] = User(blob: blob) }
    }

    func remove(_ owner: ObjectIdentifier) { state.withLock { _ = $0.users.removeValue(forKey: owner) } }

    /// Reserves memory if it is free.
    func reserve(_ count: Int, for use: Use) -> Bool {
        if use != .unstored { return state.withLock { reserve(count, use, &$0) } }
        if state.withLock({ reserve(count, .unstored, &$0) }) { return true }
        if state.withLock({ $0.copies }) == 0 { return false }
        for blob in blobs { blob.dropCopy() }
        return state.withLock { reserve(count, .unstored, &$0) }
    }

    /// Waits until memory is free, and reserves it. Meanwhile other blobs store the bytes that they have received.
    /// - Parameter deadline: monotonic nanoseconds.
    /// - Returns: false if there is no memory at the deadline.
    func awaitMemory(_ count: Int, until deadline: Int64) -> Bool {
        while true {
            if reserve(count, for: .unstored) { return true }
            storeEarly(count)
            let pause = min(deadline, SystemClock.monotonicNanoseconds() + Self.pause)
            let reserved: Void? = state.wait(until: pause) { state in
                reserve(count, .unstored, &state) ? () : nil
            }
            if reserved != nil { return true }
            if pause == deadline { return false }
        }
    }

    func release(_ count: Int, from use: Use) {
        if count == 0 { return }
        state.withLock { state in
            switch use {
            case .unstored: state.unstored -= count
            case .window: state.windows -= count
            case .copy: state.copies -= count
            }
        }
        state.notifyAll()
    }

    private func reserve(_ count: Int, _ use: Use, _ state: inout State) -> Bool {
        guard state.used + count <= limit else { return false }
        switch use {
        case .unstored: state.unstored += count
        case .window, .copy:
            guard state.windows + state.copies + count <= limit / 2 else { return false }
            if use == .window { state.windows += count } else { state.copies += count }
        }
        state.peak = max(state.peak, state.used)
        return true
    }

    private var blobs: [ObjectBlob] { state.withLock { $0.users.values.compactMap(\.blob) } }

    /// Starts to store the bytes of blobs, beginning with the blob that has the most unstored bytes, until `count`
    /// bytes will become free.
    private func storeEarly(_ count: Int) {
        var missing = count
        for (blob, _) in blobs.map({ ($0, $0.unstoredCount) }).sorted(by: { $0.1 > $1.1 }) {
            if missing <= 0 { return }
            missing -= blob.storeEarly()
        }
    }
}
