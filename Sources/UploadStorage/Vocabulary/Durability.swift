/// What an acknowledged offset survives.
public enum Durability: String, Sendable, Hashable, CaseIterable {
    /// The end of the process and the loss of power: data is synchronized before the offset is recorded.
    case acknowledged
    /// The end of the process alone.
    case relaxed
}
