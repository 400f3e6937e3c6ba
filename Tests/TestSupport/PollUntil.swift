import FoundationEssentials
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

/// Returns whether `condition` becomes true within the limit. It is evaluated every 10 milliseconds.
package func eventually(within limit: Duration = .seconds(60), _ condition: () throws -> Bool) rethrows -> Bool {
    try pollUntil(within: limit) { try condition() ? () : nil } != nil
}

/// Waits until a process that is no child of this one has ended. The ID of an ended process can exist until its parent
/// has waited for it, but the command line of such a process is empty.
package func awaitEnd(of process: pid_t, within limit: Duration = .seconds(60)) -> Bool {
    let path = "/proc/\(process)/cmdline"
    return eventually(within: limit) { FileManager.default.contents(atPath: path)?.isEmpty ?? true }
}
