import HTTPSemantics

/// A final response with as much of its content as was kept.
public struct TransferResponse: Sendable, Hashable {
    /// The status code (RFC 9110 section 15).
    public var status: Status
    /// The fields of the header section, in order.
    public var fields: Fields
    /// The first bytes of the content: at most 64 KiB.
    public var content: [UInt8]

    /// A response with as much of its content as is kept.
    public init(status: Status, fields: Fields, content: [UInt8] = []) {
        self.status = status
        self.fields = fields
        self.content = content
    }
}
