import ResumableUpload
import SystemCalls

/// What the one who claims an upload does next, outside the lock.
private enum ClaimStep<Taken> {
    case load
    case settle
    /// The target resource is at work, and the deadline has passed.
    case atWork
    case taken(Taken)
    case failed(StoreError)
}

extension OpenUpload {
    /// Waits until nobody else decides about the upload, loads what is needed, brings to its end what was begun, and then runs
    /// `take` with the lock held. Nil if the target resource is at work when the deadline passes.
    ///
    /// - Parameters:
    ///   - principal: whoever asks; another one's upload does not exist for it. Nil for the store itself.
    ///   - deadline: monotonic nanoseconds.
    func claim<Result>(
        principal: String?, until deadline: Int64, _ take: (inout State) throws(StoreError) -> Result
    ) throws(StoreError) -> Result? {
        var nextLook = deadline
        while true {
            let step = monitor.wait(until: nextLook) { state -> ClaimStep<Result>? in
                if let row = state.row, let principal, row.upload.principal != principal { return .failed(.notFound) }
                // What is told of it then has to be all of it: the last bytes may still be on their way to the disk.
                if state.activity == .processing, state.durable >= state.received,
                    SystemClock.monotonicNanoseconds() >= deadline
                {
                    return .atWork
                }
                guard state.activity == .idle, state.acknowledgment != .running || !state.needsSettling else {
                    return nil
                }
                if state.needsLoading {
                    // An acknowledgment of the bytes that were given up must not end in the middle of the new ones.
                    if state.acknowledgment == .running { return nil }
                    state.acknowledgment = .idle
                    state.activity = .loading
                    return .load
                }
                if state.needsSettling {
                    state.acknowledgment = .idle
                    state.activity = .settling
                    return .settle
                }
                defer { mirror(state) }
                do throws(StoreError) { return .taken(try take(&state)) } catch { return .failed(error) }
            }
            monitor.notifyAll()
            switch step {
            case .taken(let result): return result
            case .failed(let error): throw error
            case .load: try load()
            case .settle: try settle()
            case .atWork: return nil
            case .none:
                // Somebody loads, settles or synchronizes, which takes as long as the disk takes.
                nextLook = SystemClock.monotonicNanoseconds() + 1_000_000_000
            }
        }
    }
}
