/// The settings of a run of the client mode.
package struct ClientSettings: Sendable {
    /// A shell command that uploads `{file}` to `{url}`; `nil` to test only downloads.
    package var uploadCommand: String?
    /// A shell command that downloads `{url}` to `{file}`; `nil` to test only uploads.
    package var downloadCommand: String?
    /// The kind of the client; `nil` for a client that can pass every case.
    package var kind: ClientKind?
    /// Shell patterns of the IDs of the cases to run; empty for all cases.
    package var only: [String] = []
    /// The maximum total time of all runs of the command in one scenario.
    package var timeout: Duration = .seconds(60)
    /// The exit status with which the command requests another run.
    package var runsAgainOn: Int32 = 75
    /// The maximum number of runs of the command in one scenario.
    package var maxRuns = 3
    /// The number of scenarios that run at the same time.
    package var jobs = 4
    /// The seed of the random offsets at which connections are cut.
    package var seed: UInt64 = 1

    package init() {}
}
