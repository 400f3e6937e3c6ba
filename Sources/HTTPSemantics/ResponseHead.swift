/// What precedes the content of a response: the status and the header section (RFC 9112 §4).
public struct ResponseHead: Sendable, Hashable {
    public var status: Status
    public var fields: Fields

    public init(status: Status, fields: Fields = Fields()) {
        self.status = status
        self.fields = fields
    }
}
