/// Whether the store can do its work now.
public struct Health: Sendable, Hashable {
    public var ready: Bool
    /// Why not, one stable word each; empty when ready.
    public var reasons: [String]

    public init(ready: Bool, reasons: [String] = []) {
        self.ready = ready
        self.reasons = reasons
    }
}
