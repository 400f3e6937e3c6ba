/// Why a request is refused before anything in it is believed. The connection is to be closed after the response: where
/// the request ends is in doubt.
public struct FramingRefusal: Error, Hashable, Sendable {
    /// 400, 413, 501 or 505.
    public let status: Status
    /// A stable kebab-case word for problem document, log and metric.
    public let code: String
    /// One English sentence for people; it never repeats bytes of the request.
    public let detail: String

    public init(status: Status, code: String, detail: String) {
        self.status = status
        self.code = code
        self.detail = detail
    }
}

extension FramingRefusal {
    /// Content-Length is malformed (RFC 9110 section 8.6).
    public static let invalidContentLength = FramingRefusal.badRequest(
        "invalid-content-length", "Content-Length is not a decimal number.")
    /// Content-Length is well-formed, but no number of bytes that can be.
    public static let contentLengthOverflow = FramingRefusal(
        status: .contentTooLarge, code: "content-length-overflow",
        detail: "Content-Length is larger than any representation can be.")
    /// LF stands in the place of CRLF in the chunked coding (RFC 9112 section 2.2).
    public static let bareLineFeed = FramingRefusal.badRequest(
        "bare-line-feed", "A line of the chunked coding ends with LF instead of CRLF.")

    /// Transfer-Encoding is no list of codings (RFC 9112 section 6.1).
    public static let invalidTransferEncoding = FramingRefusal.badRequest(
        "invalid-transfer-encoding", "Transfer-Encoding is malformed.")
    /// Lines that other recipients could read in another way (RFC 9112 sections 2.2, 5.1 and 5.2).
    public static let malformedHead = FramingRefusal.badRequest(
        "malformed-head",
        "A line of the request's head is folded, has no name, holds a NUL, or does not end in CR and LF.")

    static func badRequest(_ code: String, _ detail: String) -> FramingRefusal {
        FramingRefusal(status: .badRequest, code: code, detail: detail)
    }
}
