import HTTPSemantics

/// The head of a request as it was received, and its evaluation. libmicrohttpd receives only the ``substitute``.
struct ReceivedRequest {
    enum Evaluation {
        case accepted(MessageFraming, RequestTarget)
        /// The request is rejected, and nothing after it on the connection is served.
        case refused(FramingRefusal)
    }

    /// The head, which can be incomplete if the request is rejected.
    let head: RequestHead
    let evaluation: Evaluation

    /// Evaluates a complete head.
    init(_ head: RequestHead) {
        self.head = head
        switch (MessageFraming.evaluate(head), RequestTarget(parsing: head.target)) {
        case (.failure(let refusal), _): evaluation = .refused(refusal)
        case (.success, nil): evaluation = .refused(.malformedTarget)
        case (.success(let framing), let target?): evaluation = .accepted(framing, target)
        }
    }

    init(_ head: RequestHead, refused refusal: FramingRefusal) {
        self.head = head
        evaluation = .refused(refusal)
    }

    /// The head that libmicrohttpd receives instead of the original: only what it needs to delimit the content and to
    /// format the response.
    var substitute: [UInt8] {
        var text = head.method == .head ? "HEAD / " : "POST / "
        text += head.version < .http11 ? "HTTP/1.0\r\n" : "HTTP/1.1\r\n"
        text += "Host: localhost\r\n"
        switch evaluation {
        case .accepted(.length(let length), _): text += "Content-Length: \(length)\r\n"
        case .accepted(.none, _): break
        // libmicrohttpd then expects content, so that the server can reject the request and read content that still
        // arrives.
        case .accepted(.chunked, _), .refused: text += "Transfer-Encoding: chunked\r\n"
        }
        if hasConnectionOption("close") {
            text += "Connection: close\r\n"
        } else if hasConnectionOption("keep-alive") {
            text += "Connection: keep-alive\r\n"
        }
        text += "\r\n"
        return Array(text.utf8)
    }

    private func hasConnectionOption(_ name: String) -> Bool {
        head.fields.contains { field in
            field.name.lowercased() == "connection"
                && field.value.lowercased().split(whereSeparator: { [" ", "\t", ","].contains($0) }).contains {
                    $0 == name
                }
        }
    }
}
