import HTTPSemantics
import SystemCalls

/// Sends interim responses of one request. Only the connection's own thread may use it, between the first and the last
/// call for that request: then nothing else is being written to the connection.
struct InterimChannel: Sendable {
    /// `nil` where the client does not know interim responses (HTTP/1.0) or they are turned off.
    let output: ConnectionOutput?
    /// What stands before the server's paths where the client sees them.
    let base: PublicBase

    /// Whether interim responses can be sent at all.
    var isOpen: Bool { output != nil }

    /// Sends the head of an interim response, waiting at most `timeout` milliseconds for a client that does not read.
    ///
    /// An interim response is advice: a client that does not read it misses it (RFC 9110 section 15.2).
    func send(_ head: ResponseHead, timeout: Int32) -> SocketOutput.Outcome {
        guard let output else { return .notWritable }
        let rebased = ResponseHead(status: head.status, fields: base.rebased(head.fields))
        return output.send(rebased.serialized(), timeout: timeout)
    }
}

extension ResponseHead {
    /// The head in the form of HTTP/1.1, with the empty line that ends it.
    func serialized() -> [UInt8] {
        var text = "HTTP/1.1 \(status.rawValue) \(status.reasonPhrase)\r\n"
        for field in fields { text += "\(field.name): \(field.value)\r\n" }
        text += "\r\n"
        return Array(text.utf8)
    }
}
