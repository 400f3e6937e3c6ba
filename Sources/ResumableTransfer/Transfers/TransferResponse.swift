import HTTPSemantics

/// A final response with as much of its content as was kept.
public struct TransferResponse: Sendable, Hashable {
    public var status: Status
    public var fields: Fields
    /// At most 64 KiB.
    public var content: [UInt8]

    public init(status: Status, fields: Fields, content: [UInt8] = []) {
        self.status = status
        self.fields = fields
        self.content = content
    }
}
