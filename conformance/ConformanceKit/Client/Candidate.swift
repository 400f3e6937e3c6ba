/// The client that is verified.
protocol Candidate: Sendable {
    /// Runs it once, until it ends, the time is over, or it is killed.
    func perform(_ task: CandidateTask) throws -> CandidateEnding
}

/// One run of the client.
struct CandidateTask: Sendable {
    let direction: Scenario.Direction
    let file: String
    let url: String
    /// A directory that lives as long as the scenario.
    let state: String
    /// Where what the command writes goes.
    let output: String
    let deadline: Deadline
    /// Whether the scenario wants the command killed now.
    let hasFailed: @Sendable () -> Bool
}

/// How one run of the client ended.
package enum CandidateEnding: Sendable, Hashable, CustomStringConvertible {
    case exited(Int32)
    case signaled(Int32)
    /// The scenario killed it.
    case killed
    /// It ran for too long.
    case timedOut
    /// It asked again and again, and would have gone on.
    case wentRound

    package var description: String {
        switch self {
        case .exited(let status): "exit status \(status)"
        case .signaled(let signal): "ended by signal \(signal)"
        case .killed: "killed by the scenario"
        case .timedOut: "killed as it did not end"
        case .wentRound: "killed as it kept asking"
        }
    }
}
