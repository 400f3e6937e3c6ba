/// What the person who runs the client mode asks for.
package struct ClientSettings: Sendable {
    /// A command of the shell that uploads `{file}` to `{url}`; nil to verify downloads alone.
    package var uploadCommand: String?
    /// One that downloads `{url}` to `{file}`; nil to verify uploads alone.
    package var downloadCommand: String?
    /// Patterns of IDs, `*` and `?` as in a shell; none is all.
    package var only: [String] = []
    /// How long the command may run in one scenario, all of its runs together.
    package var timeout: Duration = .seconds(60)
    /// The exit status with which the command asks to be run again.
    package var runsAgainOn: Int32 = 75
    /// How often it is run in one scenario at most.
    package var mostRuns = 3
    /// How many scenarios run at once.
    package var jobs = 4
    /// Where cuts at random places are.
    package var seed: UInt64 = 1

    package init() {}
}
