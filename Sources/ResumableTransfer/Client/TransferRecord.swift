import HTTPSemantics

/// The head of one message, for somebody who watches what goes over the wire. Credentials and the URI of an upload
/// resource are hidden in it.
public struct TransferRecord: Sendable {
    public enum Message: Sendable, Hashable {
        case request(Method, uri: String)
        /// Of a response, 1xx included.
        case response(Status, version: String)
    }

    public var message: Message
    public var fields: Fields

    init(_ message: Message, fields: Fields) {
        self.message = message
        self.fields = fields
    }

    /// What stands in place of a secret.
    static let hidden = "(hidden)"
}
