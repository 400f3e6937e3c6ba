/// A member of a List or the value of a Dictionary's member (RFC 9651 §3.1, §3.2).
package enum Member: Hashable, Sendable {
    case item(Item)
    case innerList(InnerList)
}
