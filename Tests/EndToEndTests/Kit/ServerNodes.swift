import Glibc
import SystemCalls
import TestSupport

/// The processes of a server under test: one, or several servers with a shared storage.
struct ServerNodes: Sendable {
    let all: [ChildProcess]

    var identifier: pid_t { all[0].identifier }

    /// The output of all processes to standard error.
    var errorOutput: String { all.map(\.errorOutput).joined() }

    /// How the processes ended: an error if there was one; `nil` while one of them runs.
    var ending: ChildProcess.Ending? {
        let endings = all.map(\.ending)
        let error = endings.lazy.compactMap { $0 }.first { $0 != .exited(0) && $0 != .signaled(SIGKILL) }
        return error ?? (endings.contains(nil) ? nil : endings[0])
    }

    func kill(_ signal: Int32) {
        for process in all { process.kill(signal) }
    }

    func awaitEnding(within limit: Duration = .seconds(60)) throws -> ChildProcess.Ending {
        let endings = try all.map { try $0.awaitEnding(within: limit) }
        return ending ?? endings[0]
    }

    /// Waits until `search` returns a value for the text of standard error.
    func awaitErrorOutput<Found>(within limit: Duration = .seconds(60), _ search: (String) -> Found?) throws -> Found {
        if all.count == 1 { return try all[0].awaitErrorOutput(within: limit, search) }
        let found = try pollUntil(within: limit) { () -> Found? in
            if let found = search(errorOutput) { return found }
            guard ending == nil else { throw TestFailure("a server ended; standard error: \(errorOutput)") }
            return nil
        }
        guard let found else { throw TestFailure("standard error: \(errorOutput)") }
        return found
    }

    /// The highest peak of the resident memory in bytes.
    func peakResidentBytes() -> Int? { all.compactMap { $0.peakResidentBytes() }.max() }
}
