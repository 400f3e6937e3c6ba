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
        var head: [UInt8] = []
        head.reserveCapacity(160)
        head += (self.head.method == .head ? "HEAD / " : "POST / ").utf8
        head += (self.head.version < .http11 ? "HTTP/1.0\r\n" : "HTTP/1.1\r\n").utf8
        head += "Host: localhost\r\n".utf8
        switch evaluation {
        case .accepted(.length(let length), _):
            head += "Content-Length: ".utf8
            head += String(length).utf8
            head += "\r\n".utf8
        case .accepted(.none, _): break
        // libmicrohttpd then expects content, so that the server can reject the request and read content that still
        // arrives.
        case .accepted(.chunked, _), .refused: head += "Transfer-Encoding: chunked\r\n".utf8
        }
        if hasConnectionOption("close") {
            head += "Connection: close\r\n".utf8
        } else if hasConnectionOption("keep-alive") {
            head += "Connection: keep-alive\r\n".utf8
        }
        head += "\r\n".utf8
        return head
    }

    private func hasConnectionOption(_ name: String) -> Bool {
        guard let options = head.fields["Connection"] else { return false }
        return options.split { $0 == " " || $0 == "\t" || $0 == "," }.contains {
            String($0).equalsIgnoringASCIICase(name)
        }
    }
}
