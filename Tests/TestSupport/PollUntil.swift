import Glibc
import SystemCalls

/// Repeats `attempt` until it returns a value; returns `nil` if it does not within the limit.
///
/// For conditions of other processes that nothing announces. It tries a hundred times a second.
package func pollUntil<Found>(within limit: Duration, _ attempt: () throws -> Found?) rethrows -> Found? {
    let deadline = ContinuousClock.now + limit
    while true {
        if let found = try attempt() { return found }
        if ContinuousClock.now >= deadline { return nil }
        SystemClock.pause(nanoseconds: 10_000_000)
    }
}
