/// The reason for which a request with an invalid head or framing is rejected. The connection must be closed after the
/// response, because the end of the request is unknown.
package struct FramingRefusal: Error, Hashable, Sendable {
    /// 400, 413, 414, 431, 501 or 505.
    package let status: Status
    /// A stable kebab-case word for problem document, log and metric.
    package let code: String
    /// An English sentence for people, without any bytes of the request.
    package let detail: String

    package init(status: Status, code: String, detail: String) {
        self.status = status
        self.code = code
        self.detail = detail
    }
}

extension FramingRefusal {
    /// Content-Length is malformed (RFC 9110 section 8.6).
    package static let invalidContentLength = FramingRefusal.badRequest(
        "invalid-content-length", "Content-Length is not a decimal number.")
    /// Content-Length is well-formed, but larger than the largest supported size.
    package static let contentLengthOverflow = FramingRefusal(
        status: .contentTooLarge, code: "content-length-overflow",
        detail: "Content-Length is larger than the maximum of 9223372036854775807.")
    /// A line of the chunked coding ends with LF instead of CRLF (RFC 9112 section 2.2).
    package static let bareLineFeed = FramingRefusal.badRequest(
        "bare-line-feed", "A line of the chunked coding ends with LF instead of CRLF.")
    /// The chunked coding is malformed (RFC 9112 section 7.1).
    package static let malformedChunk = FramingRefusal.badRequest(
        "malformed-chunk",
        "A chunk has an invalid size, an extension that is malformed or too long, or no CRLF where one is needed.")
    /// The trailer section is malformed (RFC 9112 section 7.1.2).
    package static let malformedTrailer = FramingRefusal.badRequest(
        "malformed-trailer",
        "A line of the trailer section is folded, has no valid name, or holds a NUL, a bare CR or another control character."
    )
    /// The trailer section is longer than the server's limit.
    package static let trailerTooLarge = FramingRefusal(
        status: .requestHeaderFieldsTooLarge, code: "trailer-too-large",
        detail: "The trailer section has more than 16384 bytes.")

    /// Transfer-Encoding is not a list of codings (RFC 9112 section 6.1).
    package static let invalidTransferEncoding = FramingRefusal.badRequest(
        "invalid-transfer-encoding", "Transfer-Encoding is malformed.")
    /// The first line is not a request line (RFC 9112 section 3).
    package static let malformedRequestLine = FramingRefusal.badRequest(
        "malformed-request-line",
        "The request line is not a method, a target and an HTTP version with one space between them.")
    /// The target has none of the forms of RFC 9112 section 3.2.
    package static let malformedTarget = FramingRefusal.badRequest(
        "malformed-target", "The request target is not a path, an absolute URL, or * with OPTIONS.")
    /// The request line is longer than the server's limit.
    package static let targetTooLong = FramingRefusal(
        status: .uriTooLong, code: "target-too-long", detail: "The request line has more than 65536 bytes.")
    /// The head is longer than the server's limit.
    package static let headTooLarge = FramingRefusal(
        status: .requestHeaderFieldsTooLarge, code: "head-too-large",
        detail: "The request's head has more than 65536 bytes or 1000 lines.")
    /// The head has lines that other recipients could interpret differently (RFC 9112 sections 2.2, 5.1 and 5.2).
    package static let malformedHead = FramingRefusal.badRequest(
        "malformed-head",
        "A line of the request's head is folded, has no name, holds a NUL or a bare CR, or does not end in CR and LF.")

    static func badRequest(_ code: String, _ detail: String) -> FramingRefusal {
        FramingRefusal(status: .badRequest, code: code, detail: detail)
    }
}
