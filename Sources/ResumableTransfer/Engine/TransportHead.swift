import HTTPSemantics

/// The head of a response, interim or final.
struct TransportHead: Sendable {
    var status: Status
    var fields: Fields
    /// As in the status line: "HTTP/1.1", "HTTP/2".
    var httpVersion: String
    /// The URI that was asked.
    var uri: String
}
