import SystemCalls

/// The acknowledgments of small pieces of slow uploads. They wait for others for a short time, so that one commit records
/// many of them. A caller that needs one immediately runs it itself.
final class GatheredAcknowledgments: Sendable {
    /// The size in bytes of pieces that are too large to wait.
    static let maxSize: Int64 = 64 << 10
    /// The time in nanoseconds for which the first acknowledgment waits.
    private static let pause: Int64 = 50_000_000
    /// The number of threads among which the acknowledgments are divided if their bytes have to be synchronized.
    private static let parts = 4
    /// The maximum number of these acknowledgments for each commit. A request for one of the uploads may have to wait
    /// until the bytes of all of them are synchronized.
    private static let maxCount = 16

    private typealias Waiting = (upload: OpenUpload, use: UploadUse?)

    private struct State {
        var waiting: [Waiting] = []
        var isClosed = false
    }

    private let state = Monitor(State())
    private let context: StoreContext
    private let queue: WorkQueue

    init(_ context: StoreContext) throws(Errno) {
        self.context = context
        queue = try WorkQueue(name: "gather", threads: 1)
    }

    /// Adds the acknowledgment of an upload, or withdraws it once this is closed.
    func add(_ upload: OpenUpload, _ use: UploadUse?) {
        let count = state.withLock { state in
            if !state.isClosed { state.waiting.append((upload, use)) }
            return state.isClosed ? 0 : state.waiting.count
        }
        switch count {
        case 0: upload.update { $0.machine.withdrawQueuedAcknowledgment() }
        case 1: queue.enqueue { [self] in passOn() }
        default: break
        }
    }

    private func passOn() {
        let queuedAt = SystemClock.monotonicNanoseconds()
        let deadline = queuedAt + Self.pause
        _ = state.wait(until: deadline) { $0.isClosed ? () : nil }
        let all = removeWaiting()
        guard !all.isEmpty else { return }
        let share = (all.count + Self.parts - 1) / Self.parts
        let count = context.shouldSynchronize ? min(Self.maxCount, share) : all.count
        for start in stride(from: 0, to: all.count, by: count) {
            let part = all[start..<min(start + count, all.count)]
            context.acknowledging.enqueue { [context] in
                OpenUpload.runQueuedAcknowledgments(part.map(\.upload), queuedAt: queuedAt, context)
                withExtendedLifetime(part) {}
            }
        }
    }

    private func removeWaiting() -> [Waiting] {
        state.withLock { state in
            defer { state.waiting = [] }
            return state.waiting
        }
    }

    /// Passes on the acknowledgments that wait, and accepts no more.
    func close() {
        state.withLock { $0.isClosed = true }
        state.notifyAll()
        queue.close()
        for (upload, _) in removeWaiting() { upload.update { $0.machine.withdrawQueuedAcknowledgment() } }
    }
}
