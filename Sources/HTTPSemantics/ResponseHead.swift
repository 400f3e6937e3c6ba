/// The part of a response before its content: the status and the header section (RFC 9112 §4).
package struct ResponseHead: Sendable, Hashable {
    package var status: Status
    package var fields: Fields

    package init(status: Status, fields: Fields = Fields()) {
        self.status = status
        self.fields = fields
    }
}
