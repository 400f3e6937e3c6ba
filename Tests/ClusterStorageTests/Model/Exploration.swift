/// All states of a model that can be reached, or those until the first violation of an invariant.
struct Exploration: CustomStringConvertible {
    private(set) var violation: String?
    /// The steps to the violation.
    private(set) var steps: [ClusterModel.Step] = []
    private(set) var stateCount = 0
    /// Whether all states were explored.
    private(set) var isComplete = true

    init(_ start: ClusterModel, maxStates: Int) {
        // A state is recorded by its hash: with 64 bits, two of a few million states are unlikely to have the same.
        var known: Set<Int> = [start.hashValue]
        var origins: [(parent: Int, step: ClusterModel.Step)] = [(-1, .tick)]
        var frontier = [(index: 0, state: start)]
        while !frontier.isEmpty {
            var next: [(index: Int, state: ClusterModel)] = []
            for (index, state) in frontier {
                for (step, successor) in state.successors() where known.insert(successor.hashValue).inserted {
                    origins.append((index, step))
                    if successor.violation != nil {
                        violation = successor.violation
                        stateCount = known.count
                        var position = origins.count - 1
                        while position > 0 {
                            steps.insert(origins[position].step, at: 0)
                            position = origins[position].parent
                        }
                        return
                    }
                    next.append((origins.count - 1, successor))
                }
            }
            if known.count > maxStates {
                isComplete = false
                break
            }
            frontier = next
        }
        stateCount = known.count
    }

    var description: String {
        let list = steps.map { "  \($0)" }.joined(separator: "\n")
        return "\(violation ?? "no violation") (\(stateCount) states)\n\(list)"
    }
}
