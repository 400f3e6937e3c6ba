import HTTPSemantics
import SystemCalls

/// Sends interim responses to one request. Only the thread of the connection may use it, between the first and the last
/// call for that request, when nothing else writes to the connection.
struct InterimChannel: Sendable {
    /// Sends bytes and waits at most `timeout` milliseconds until the connection is writable; `nil` if the client does
    /// not support interim responses (HTTP/1.0). If more output follows immediately, both may be sent together.
    let send: (@Sendable (_ bytes: [UInt8], _ timeout: Int32, _ isFollowed: Bool) -> SocketOutput.Outcome)?
    /// The base of the server's paths for the client.
    let base: PublicBase

    /// Whether interim responses can be sent.
    var isOpen: Bool { send != nil }

    /// Sends the head of an interim response. Waits at most `timeout` milliseconds until the connection is writable.
    ///
    /// An interim response is optional: a client that does not read misses it (RFC 9110 section 15.2).
    /// - Parameter isFollowed: whether the final response follows immediately, and may be sent together with this one.
    func send(_ head: ResponseHead, timeout: Int32, isFollowed: Bool = false) -> SocketOutput.Outcome {
        guard let send else { return .notWritable }
        let rebased = ResponseHead(status: head.status, fields: base.rebased(head.fields))
        return send(rebased.serialized(), timeout, isFollowed)
    }
}

extension ResponseHead {
    /// The head as in HTTP/1.1, including the empty line at its end.
    func serialized() -> [UInt8] {
        var head: [UInt8] = []
        head.reserveCapacity(512)
        func append(_ texts: String...) { for text in texts { head += text.utf8 } }
        append("HTTP/1.1 ", String(status.rawValue), " ", status.reasonPhrase, "\r\n")
        for field in fields { append(field.name, ": ", field.value, "\r\n") }
        append("\r\n")
        return head
    }
}

/// The maximum number of interim responses to a request.
enum InterimAllowance {
    /// Go's HTTP client, and proxies that use it (Caddy, Traefik), accept at most 5 interim responses, and abort the
    /// request at the sixth.
    private static let maxResponses = 5

    /// The maximum number of interim responses with offsets, in addition to the interim response with the URL of the
    /// upload and a possible 100; `nil`: any number.
    ///
    /// The limit applies to every proxy, because the server cannot detect whether a proxy uses Go's HTTP client.
    static func offsets(for fields: Fields) -> Int? {
        let isForwarded = ["Via", "Forwarded", "X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host"].contains {
            fields.contains($0)
        }
        let isGo = fields["User-Agent"]?.hasPrefix("Go-http-client/") == true
        return isForwarded || isGo ? maxResponses - 2 : nil
    }
}

/// Names of fields that only this server uses.
enum ServerFieldName {
    /// In a request, `off` turns off interim responses of the upload protocol, for proxies that fail on them.
    static let interim = "Onward-Interim"
    /// In a request, `?1` requests an explanation of omitted interim responses, in a field of this name in the
    /// response.
    static let explain = "Onward-Explain"

    static let requestFields = [interim, explain]
}
