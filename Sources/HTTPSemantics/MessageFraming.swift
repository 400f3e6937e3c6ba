/// How the content of an HTTP/1 request is delimited (RFC 9112 section 6).
package enum MessageFraming: Sendable, Hashable {
    /// Neither Content-Length nor Transfer-Encoding: there is no content.
    case none
    /// The content has exactly this number of bytes, which may be zero.
    case length(Int64)
    /// The chunked transfer coding, and no other.
    case chunked

    /// Evaluates the head of one HTTP/1 request strictly by RFC 9112 section 3.2, section 5 and section 6.
    ///
    /// It is stricter than the RFC, because ambiguous framing is an attack or a defect. Content-Length together with
    /// Transfer-Encoding is refused. An empty list element makes either field malformed. All values of a repeated
    /// Content-Length must be the same text, and Host must not be empty. A Content-Length above `Int64.max` is
    /// well-formed, and therefore results in 413.
    ///
    /// Refusals: `invalid-field-name`, `invalid-field-value`, `invalid-transfer-encoding`, `chunked-not-final`,
    /// `chunked-repeated`, `transfer-encoding-in-old-http`, `content-length-with-transfer-encoding`,
    /// `invalid-content-length`, `conflicting-content-length`, `missing-host`, `repeated-host`, `invalid-host` (all
    /// 400); `content-length-overflow` (413); `unknown-transfer-coding` (501); `unsupported-http-version` (505).
    package static func evaluate(_ head: RequestHead) -> Result<MessageFraming, FramingRefusal> {
        do throws(FramingRefusal) {
            guard head.version.major == 1 else {
                throw FramingRefusal(
                    status: .httpVersionNotSupported, code: "unsupported-http-version",
                    detail: "Only HTTP/1.0 and HTTP/1.1 are supported.")
            }
            try checkSyntax(of: head.fields)
            let framing = try delimiter(of: head)
            try checkHost(of: head)
            return .success(framing)
        } catch {
            return .failure(error)
        }
    }

    private static func checkSyntax(of fields: Fields) throws(FramingRefusal) {
        guard let field = fields.firstInvalid else { return }
        guard Fields.isValidName(field.name) else {
            throw .badRequest(
                "invalid-field-name", "A field name is empty or contains a character that is not allowed.")
        }
        throw .badRequest("invalid-field-value", "A field value contains a control character.")
    }

    private static func delimiter(of head: RequestHead) throws(FramingRefusal) -> MessageFraming {
        let lengths = head.fields["Content-Length"]
        guard head.fields.contains("Transfer-Encoding") else {
            return if let lengths { .length(try contentLength(lengths)) } else { .none }
        }
        guard head.version >= .http11 else {
            throw .badRequest("transfer-encoding-in-old-http", "HTTP/1.0 does not have Transfer-Encoding.")
        }
        guard lengths == nil else {
            throw .badRequest(
                "content-length-with-transfer-encoding",
                "A request must not have both Content-Length and Transfer-Encoding.")
        }
        try checkCodings(head.fields.values("Transfer-Encoding"))
        return .chunked
    }

    /// Throws unless the values of `Transfer-Encoding` are valid and name only supported codings.
    package static func checkCodings(_ lines: [String]) throws(FramingRefusal) {
        var scanner = FieldValueScanner(lines.joined(separator: ", "))
        let codings = scanner.list(isEmptyElementAllowed: false) { scanner -> (name: String, isPlain: Bool)? in
            guard let name = scanner.token() else { return nil }
            let end = scanner.position
            guard scanner.parameters() != nil else { return nil }
            return (name.asciiLowercased, scanner.position == end)
        }
        guard let codings, let last = codings.last, !codings.contains(where: { $0.name == "chunked" && !$0.isPlain })
        else { throw .invalidTransferEncoding }
        guard codings.count(where: { $0.name == "chunked" }) <= 1 else {
            throw .badRequest("chunked-repeated", "The chunked coding is applied more than once.")
        }
        guard last.name == "chunked" else {
            throw .badRequest("chunked-not-final", "The final transfer coding of a request must be chunked.")
        }
        guard codings.count == 1 else {
            throw FramingRefusal(
                status: .notImplemented, code: "unknown-transfer-coding",
                detail: "The only supported transfer coding is chunked.")
        }
    }

    /// - Parameter value: the combined value of all lines.
    private static func contentLength(_ value: String) throws(FramingRefusal) -> Int64 {
        // Nearly every value is one number, which needs no list.
        if !value.isEmpty, value.utf8.allSatisfy(\.isDigit) { return try number(value.utf8) }
        var scanner = FieldValueScanner(value)
        let texts = scanner.list(isEmptyElementAllowed: false) { scanner -> ArraySlice<UInt8>? in
            let digits = scanner.run(where: \.isDigit)
            return digits.isEmpty ? nil : digits
        }
        guard let texts, let text = texts.first else {
            throw .invalidContentLength
        }
        guard texts.allSatisfy({ $0.elementsEqual(text) }) else {
            throw .badRequest("conflicting-content-length", "Content-Length is given with different values.")
        }
        return try number(text)
    }

    private static func number(_ digits: some Sequence<UInt8>) throws(FramingRefusal) -> Int64 {
        var length: Int64 = 0
        for digit in digits {
            let (tenfold, overflowsTenfold) = length.multipliedReportingOverflow(by: 10)
            let (sum, overflowsSum) = tenfold.addingReportingOverflow(Int64(digit - UInt8(ascii: "0")))
            guard !overflowsTenfold, !overflowsSum else { throw .contentLengthOverflow }
            length = sum
        }
        return length
    }

    private static func checkHost(of head: RequestHead) throws(FramingRefusal) {
        guard head.fields.count(where: { $0.name.equalsIgnoringASCIICase("Host") }) <= 1 else {
            throw .badRequest("repeated-host", "Host is given more than once.")
        }
        guard let host = head.fields["Host"] else {
            guard head.version < .http11 else {
                throw .badRequest("missing-host", "An HTTP/1.1 request needs Host.")
            }
            return
        }
        guard Authority(parsing: host) != nil else {
            throw .badRequest("invalid-host", "Host is not a host name or address with an optional port.")
        }
    }
}

/// The expectation in the Expect field (RFC 9110 section 10.1.1).
package enum Expectation: Sendable, Hashable {
    case none
    /// `100-continue`: the client sends the content after a 100 or final response.
    case continue100
    /// Any other expectation; the response is 417.
    case unsupported

    /// Reads all Expect lines; names are compared without regard to case, and empty elements are skipped.
    ///
    /// - Parameter version: The version of the request. In HTTP/1.0, `100-continue` must be ignored.
    package init(fields: Fields, version: ProtocolVersion = .http11) {
        guard fields.contains("Expect") else {
            self = .none
            return
        }
        var scanner = FieldValueScanner(fields.values("Expect").joined(separator: ", "))
        // An element with an argument or parameter is another expectation.
        guard let names = scanner.list(of: { $0.token() }),
            names.allSatisfy({ $0.equalsIgnoringASCIICase("100-continue") })
        else {
            self = .unsupported
            return
        }
        self = names.isEmpty || version < .http11 ? .none : .continue100
    }
}

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
        "A line of the trailer section is folded, has no valid name, or contains a control character, such as a bare CR."
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
        detail: "The request's head has more than 65536 bytes or more than 1000 lines.")
    /// The head has lines that other recipients could interpret differently (RFC 9112 sections 2.2, 5.1 and 5.2).
    package static let malformedHead = FramingRefusal.badRequest(
        "malformed-head",
        "A line of the request's head is folded, has no name, contains NUL or a bare CR, or does not end in CR and LF.")

    static func badRequest(_ code: String, _ detail: String) -> FramingRefusal {
        FramingRefusal(status: .badRequest, code: code, detail: detail)
    }
}
