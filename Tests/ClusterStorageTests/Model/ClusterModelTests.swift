import Testing

@Suite("The protocol of the nodes, as a model")
struct ClusterModelTests {
    @Test(
        "Whatever the order of the steps of two nodes, reported bytes stay readable, and the upload ends once, as was reported",
        arguments: ClusterModel.Limits.scenarios)
    func invariants(limits: ClusterModel.Limits) {
        let result = Exploration(ClusterModel(limits: limits), maxStates: 500_000)
        #expect(result.violation == nil, "\(result)")
        #expect(result.isComplete && result.stateCount > 50)
    }

    @Test(
        "If a rule of the protocol is left out, the model finds a violation", arguments: ClusterModel.Mutation.allCases)
    func mutations(mutation: ClusterModel.Mutation) {
        let violation = ClusterModel.Limits.scenarios.lazy
            .compactMap { Exploration(ClusterModel(limits: $0, mutation: mutation), maxStates: 500_000).violation }
            .first
        #expect(violation != nil)
    }
}
