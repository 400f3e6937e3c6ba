/// Items in parentheses, and the parameters of the list (RFC 9651 §3.1.1). It can be empty.
package struct InnerList: Hashable, Sendable {
    package var items: [Item]
    package var parameters: Parameters

    package init(_ items: [Item] = [], parameters: Parameters = [:]) {
        self.items = items
        self.parameters = parameters
    }
}
