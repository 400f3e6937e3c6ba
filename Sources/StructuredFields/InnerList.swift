/// Items in parentheses, with parameters for the whole (RFC 9651 §3.1.1). It may be empty.
package struct InnerList: Hashable, Sendable {
    package var items: [Item]
    package var parameters: Parameters

    package init(_ items: [Item] = [], parameters: Parameters = [:]) {
        self.items = items
        self.parameters = parameters
    }
}
