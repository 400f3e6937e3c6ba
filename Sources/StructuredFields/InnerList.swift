/// Items in parentheses, with parameters for the whole (RFC 9651 §3.1.1). It may be empty.
public struct InnerList: Hashable, Sendable {
    public var items: [Item]
    public var parameters: Parameters

    public init(_ items: [Item] = [], parameters: Parameters = [:]) {
        self.items = items
        self.parameters = parameters
    }
}
