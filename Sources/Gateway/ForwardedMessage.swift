import HTTPSemantics
import ResumableUpload
import SystemCalls

/// The rules by which fields are forwarded (RFC 9110 section 7.6).
enum ForwardedMessage {
    // The lists are compared without regard to case. They are arrays, because most names differ from all elements already
    // in their length, which costs less than a hash.

    /// Fields that belong to one connection (RFC 9110 section 7.6.1, RFC 9112 section 9.6).
    private static let connectionFields = [
        "connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
        "proxy-authenticate", "proxy-authorization", "proxy-authentication-info",
    ]
    /// Fields of requests that the gateway sets itself.
    private static let ownFields = [
        "host", "content-length", "expect", "forwarded", "via", "x-real-ip", "http2-settings",
    ]
    /// Fields of requests that only the upload protocol uses, or that describe a part of the content.
    private static let uploadFields = [
        "upload-complete", "upload-incomplete", "upload-offset", "upload-length", "upload-limit",
        "upload-draft-interop-version", "content-digest", "want-repr-digest", "want-content-digest", "idempotency-key",
    ]

    /// The fields of a request that the origin gets.
    /// - Parameter isUpload: whether the request used the upload protocol. The origin gets no fields of this protocol.
    static func requestFields(_ fields: Fields, isUpload: Bool) -> Fields {
        let options = fields.connectionOptions
        var result = Fields()
        for field in fields {
            let name = field.name
            // Some servers map hyphens and underscores of names to the same character.
            if name.hasPrefixIgnoringASCIICase("Onward-") || name.hasPrefixIgnoringASCIICase("X-Forwarded-")
                || name.utf8.contains(UInt8(ascii: "_"))
            {
                continue
            }
            func isIn(_ names: [String]) -> Bool { names.contains(where: name.equalsIgnoringASCIICase) }
            if isIn(connectionFields) || isIn(ownFields) || isIn(options) || isUpload && isIn(uploadFields) { continue }
            result.append(name, field.value)
        }
        return result
    }

    /// The fields of a response that the client gets. The server adds the framing.
    static func responseFields(_ fields: Fields) -> Fields {
        let options = fields.connectionOptions
        var result = Fields()
        for field in fields {
            let name = field.name
            func isIn(_ names: [String]) -> Bool { names.contains(where: name.equalsIgnoringASCIICase) }
            if isIn(connectionFields) || isIn(options) || name.equalsIgnoringASCIICase("Content-Length") { continue }
            result.append(name, field.value)
        }
        return result
    }

    /// The number of servers of this kind that have forwarded a request, this one included, according to `Via` (RFC 9110
    /// section 7.6.3).
    static func visits(in fields: Fields) -> Int {
        fields.values("Via").reduce(0) { count, value in
            count + value.utf8.split(separator: UInt8(ascii: ",")).count { $0.suffix(7).elementsEqual(" onward".utf8) }
        }
    }

    /// Whether the client requests another protocol for this connection (RFC 9110 section 7.8).
    static func requestsUpgrade(_ fields: Fields) -> Bool {
        guard fields.hasConnectionOption("Upgrade") else { return false }
        // A server may ignore an upgrade to HTTP/2, which RFC 9113 has removed.
        return fields.values("Upgrade").contains { $0.lowercased() != "h2c" }
    }

    /// The time that `Retry-After` of a response requests, as seconds or a date, at most one hour; `nil` if it is absent or
    /// malformed.
    static func retryAfter(_ fields: Fields, now: Int64 = SystemClock.realtimeSeconds()) -> Duration? {
        var policy = RetryPolicy()
        policy.maxRetryAfter = .seconds(3600)
        return policy.retryAfter(fields, now: now)
    }

    /// The length of the content of a response; `nil` if its framing marks the end.
    static func contentLength(_ fields: Fields) -> Int64? {
        guard !fields.contains("Transfer-Encoding") else { return nil }
        return fields["Content-Length"].flatMap { Int64($0) }
    }
}
