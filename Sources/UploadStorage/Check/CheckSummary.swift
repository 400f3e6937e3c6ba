/// What a check of a data directory has looked at.
public struct CheckSummary: Sendable, Hashable {
    public var uploads = 0
    public var unfinished = 0
    /// Published files of which there is a record.
    public var files = 0
    public var findings = 0
    /// How many of the findings are damage.
    public var damages = 0
}
