/// The client under test.
protocol Candidate: Sendable {
    /// Runs the client once, until it ends, the deadline passes, or the scenario kills it.
    func perform(_ task: CandidateTask) throws -> CandidateEnding
}

/// One run of the client.
struct CandidateTask: Sendable {
    let direction: Scenario.Direction
    let file: String
    let url: String
    /// A directory that is kept for the duration of the scenario.
    let state: String
    /// The file that receives the output of the command.
    let output: String
    let deadline: Deadline
    /// Whether to kill the command now.
    let shouldKill: @Sendable () -> Bool
}

/// How one run of the client ended.
package enum CandidateEnding: Sendable, Hashable, CustomStringConvertible {
    case exited(Int32)
    case signaled(Int32)
    /// The scenario killed the client.
    case killed
    /// The client exceeded its time limit and was killed.
    case timedOut
    /// The client repeated its requests without progress and was killed.
    case repeatedRequests

    package var description: String {
        switch self {
        case .exited(let status): "exit status \(status)"
        case .signaled(let signal): "ended by signal \(signal)"
        case .killed: "killed by the scenario"
        case .timedOut: "killed because it exceeded its time limit"
        case .repeatedRequests: "killed because it repeated its requests"
        }
    }
}
