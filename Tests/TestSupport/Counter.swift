import Synchronization
import SystemCalls

/// A counter that any thread can increase.
package final class Counter: Sendable {
    private let count = Atomic(0)

    package init() {}

    package var value: Int { count.load(ordering: .sequentiallyConsistent) }

    /// Increases the counter, and returns its new value: 1 for the first call.
    @discardableResult
    package func next() -> Int { count.add(1, ordering: .sequentiallyConsistent).newValue }
}

extension Monitor<Bool> {
    /// Sets the flag, which other threads await.
    package func raise() {
        withLock { $0 = true }
        notifyAll()
    }
}
