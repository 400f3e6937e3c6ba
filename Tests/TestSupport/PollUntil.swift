import Glibc
import SystemCalls

/// Repeats `attempt` until it returns a value; returns `nil` if it returns no value within the limit.
///
/// Use it for conditions of other processes that send no notification. `attempt` is called every 10 milliseconds.
package func pollUntil<Found>(within limit: Duration, _ attempt: () throws -> Found?) rethrows -> Found? {
    let deadline = ContinuousClock.now + limit
    while true {
        if let found = try attempt() { return found }
        if ContinuousClock.now >= deadline { return nil }
        SystemClock.pause(nanoseconds: 10_000_000)
    }
}
