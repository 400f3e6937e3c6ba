import HTTPSemantics

/// The head of one message, for an observer. Credentials and the URI of an upload
/// resource are hidden in it.
public struct TransferRecord: Sendable {
    /// The first line of a message.
    public enum Message: Sendable, Hashable {
        case request(Method, uri: String)
        /// The status line of a response, including 1xx.
        case response(Status, version: String)
    }

    /// The request line or the status line.
    public var message: Message
    /// The fields of the message. The values of those with secrets are replaced.
    public var fields: Fields

    init(_ message: Message, fields: Fields) {
        self.message = message
        self.fields = fields
    }

    /// The text that replaces a secret.
    static let hidden = "(hidden)"
}
