import HTTPSemantics
import SystemCalls

/// Sends interim responses to one request. Only the thread of the connection may use it, between the first and the last
/// call for that request, when nothing else writes to the connection.
struct InterimChannel: Sendable {
    /// `nil` if the client does not support interim responses (HTTP/1.0) or they are turned off.
    let output: ConnectionOutput?
    /// The base of the server's paths for the client.
    let base: PublicBase

    /// Whether interim responses can be sent.
    var isOpen: Bool { output != nil }

    /// Sends the head of an interim response. Waits at most `timeout` milliseconds until the connection is writable.
    ///
    /// An interim response is optional: a client that does not read misses it (RFC 9110 section 15.2).
    func send(_ head: ResponseHead, timeout: Int32) -> SocketOutput.Outcome {
        guard let output else { return .notWritable }
        let rebased = ResponseHead(status: head.status, fields: base.rebased(head.fields))
        return output.send(rebased.serialized(), timeout: timeout)
    }
}

extension ResponseHead {
    /// The head as in HTTP/1.1, including the empty line at its end.
    func serialized() -> [UInt8] {
        var text = "HTTP/1.1 \(status.rawValue) \(status.reasonPhrase)\r\n"
        for field in fields { text += "\(field.name): \(field.value)\r\n" }
        text += "\r\n"
        return Array(text.utf8)
    }
}
