/// A final response.
public struct Response: Sendable, Hashable {
    /// The content of a response.
    public enum Content: Sendable {
        /// All bytes, in memory.
        case bytes([UInt8])
        /// Bytes that are read or produced while they are sent.
        case stream(any ContentStream)
    }

    /// The status code.
    public var status: Status
    /// The header section, without `Content-Length`, `Date` and `Connection`, which the server adds.
    public var fields: Fields
    /// The content.
    public var content: Content

    /// Creates a response.
    public init(status: Status, fields: Fields = [:], content: Content = .bytes([])) {
        self.status = status
        self.fields = fields
        self.content = content
    }

    /// Creates a response whose content is in memory.
    public init(status: Status, fields: Fields = [:], content: [UInt8]) {
        self.init(status: status, fields: fields, content: .bytes(content))
    }

    /// A problem document (RFC 9457) with further fields.
    public init(_ problem: ProblemDetails, fields: Fields = [:]) {
        var fields = fields
        fields.set("Content-Type", ProblemDetails.mediaType)
        self.init(status: problem.status, fields: fields, content: problem.json())
    }
}

/// Content of a response that is read or produced while it is sent.
///
/// The server requests the next bytes when the connection is writable, so that production stops while the client does
/// not read, and only one piece is in memory. There is one call at a time. The object is released when the response was
/// sent or the connection has ended. For `HEAD`, `read` is never called.
public protocol ContentStream: AnyObject, Sendable {
    /// The number of bytes; `nil`, the default, if it is unknown before the end.
    var length: Int64? { get }

    /// Writes the next bytes to the start of `buffer`, which is not empty, and returns their number; 0 means the end of
    /// the content.
    /// - Parameter position: the number of bytes that were returned before.
    /// - Throws: any error. The client then gets a response that it can recognize as incomplete, and the error is
    ///   logged.
    func read(into buffer: UnsafeMutableRawBufferPointer, at position: Int64) throws -> Int
}

extension ContentStream {
    /// The default: `nil`.
    public var length: Int64? { nil }
}

extension Response.Content: Hashable {
    /// Bytes are compared; a stream equals only itself.
    public static func == (left: Self, right: Self) -> Bool {
        switch (left, right) {
        case (.bytes(let left), .bytes(let right)): left == right
        case (.stream(let left), .stream(let right)): left === right
        default: false
        }
    }

    /// Hashes the bytes, or the identity of a stream.
    public func hash(into hasher: inout Hasher) {
        switch self {
        case .bytes(let bytes): hasher.combine(bytes)
        case .stream(let stream): hasher.combine(ObjectIdentifier(stream))
        }
    }

    /// The bytes in memory; `nil` for a stream.
    public var bytes: [UInt8]? { if case .bytes(let bytes) = self { bytes } else { nil } }

    /// The number of bytes; `nil` if it is unknown before the end.
    public var length: Int64? {
        switch self {
        case .bytes(let bytes): Int64(bytes.count)
        case .stream(let stream): stream.length
        }
    }
}

extension Response {
    /// The reason why content cannot be loaded into memory.
    package enum LoadingError: Error, Hashable, CustomStringConvertible {
        /// The content has more bytes than the limit.
        case tooLong(limit: Int)
        /// The content has fewer bytes than its length.
        case incomplete

        package var description: String {
            switch self {
            case .tooLong(let limit): "the content of a saved response has more than \(limit) bytes"
            case .incomplete: "the content of a response has fewer bytes than its length"
            }
        }
    }

    /// The same response with all its content in memory; a stream is read to its end.
    /// - Throws: `LoadingError`, or the error of the stream.
    package func loaded(limit: Int = 1 << 20) throws -> Response {
        guard case .stream(let stream) = content else { return self }
        if let length = stream.length, length > Int64(limit) { throw LoadingError.tooLong(limit: limit) }
        let bytes =
            if let length = stream.length { try Self.read(stream, count: Int(length)) } else {
                try Self.read(stream, limit: limit)
            }
        return Response(status: status, fields: fields, content: bytes)
    }

    private static func read(_ stream: any ContentStream, count: Int) throws -> [UInt8] {
        try [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            let memory = UnsafeMutableRawBufferPointer(buffer)
            while filled < count {
                let remaining = UnsafeMutableRawBufferPointer(rebasing: memory[filled..<count])
                let read = try stream.read(into: remaining, at: Int64(filled))
                guard read > 0 else { throw LoadingError.incomplete }
                filled += read
            }
        }
    }

    /// Reads a stream of unknown length.
    private static func read(_ stream: any ContentStream, limit: Int) throws -> [UInt8] {
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = try piece.withUnsafeMutableBytes { try stream.read(into: $0, at: Int64(bytes.count)) }
            if count == 0 { return bytes }
            bytes += piece[..<count]
            if bytes.count > limit { throw LoadingError.tooLong(limit: limit) }
        }
    }
}

/// The part of a response before its content: the status and the header section (RFC 9112 section 4).
package struct ResponseHead: Sendable, Hashable {
    package var status: Status
    package var fields: Fields

    package init(status: Status, fields: Fields = Fields()) {
        self.status = status
        self.fields = fields
    }
}

/// A status code (RFC 9110 section 15). Any number can be represented; HTTP allows 100…599.
public struct Status: RawRepresentable, Hashable, Sendable, ExpressibleByIntegerLiteral {
    /// The number of the status code.
    public let rawValue: Int

    /// Creates a status code from its number.
    public init(rawValue: Int) {
        self.rawValue = rawValue
    }

    /// Creates a status code from a literal number.
    public init(integerLiteral value: Int) {
        rawValue = value
    }

    /// Whether the status is 1xx, that of an interim response.
    public var isInformational: Bool { (100..<200).contains(rawValue) }
    /// Whether the status is 2xx: the request has succeeded.
    public var isSuccessful: Bool { (200..<300).contains(rawValue) }
    /// Whether the status is 3xx: the client has to do more, for example to send the request to another URI.
    public var isRedirection: Bool { (300..<400).contains(rawValue) }
    /// Whether the status is 4xx: the request is not valid, or is not allowed.
    public var isClientError: Bool { (400..<500).contains(rawValue) }
    /// Whether the status is 5xx: the server has failed.
    public var isServerError: Bool { (500..<600).contains(rawValue) }

    /// Whether a response with this status never has content, whatever the method was: 1xx, 204 and 304
    /// (RFC 9112 section 6.3).
    public var isContentForbidden: Bool { isInformational || self == .noContent || self == .notModified }
}

extension Status: CustomStringConvertible {
    /// The number in decimal digits.
    public var description: String { String(rawValue) }
}

/// The registered status codes that this package uses, named after the reason phrases of the registry.
extension Status {
    /// 100 (RFC 9110 section 15.2.1)
    public static let `continue`: Status = 100
    /// 101 (RFC 9110 section 15.2.2)
    public static let switchingProtocols: Status = 101
    /// 104 (draft section 5)
    public static let uploadResumptionSupported: Status = 104
    /// 200 (RFC 9110 section 15.3.1)
    public static let ok: Status = 200
    /// 201 (RFC 9110 section 15.3.2)
    public static let created: Status = 201
    /// 202 (RFC 9110 section 15.3.3)
    public static let accepted: Status = 202
    /// 204 (RFC 9110 section 15.3.5)
    public static let noContent: Status = 204
    /// 205 (RFC 9110 section 15.3.6)
    public static let resetContent: Status = 205
    /// 206 (RFC 9110 section 15.3.7)
    public static let partialContent: Status = 206
    /// 301 (RFC 9110 section 15.4.2)
    public static let movedPermanently: Status = 301
    /// 302 (RFC 9110 section 15.4.3)
    public static let found: Status = 302
    /// 303 (RFC 9110 section 15.4.4)
    public static let seeOther: Status = 303
    /// 304 (RFC 9110 section 15.4.5)
    public static let notModified: Status = 304
    /// 307 (RFC 9110 section 15.4.8)
    public static let temporaryRedirect: Status = 307
    /// 308 (RFC 9110 section 15.4.9)
    public static let permanentRedirect: Status = 308
    /// 400 (RFC 9110 section 15.5.1)
    public static let badRequest: Status = 400
    /// 401 (RFC 9110 section 15.5.2)
    public static let unauthorized: Status = 401
    /// 403 (RFC 9110 section 15.5.4)
    public static let forbidden: Status = 403
    /// 404 (RFC 9110 section 15.5.5)
    public static let notFound: Status = 404
    /// 405 (RFC 9110 section 15.5.6)
    public static let methodNotAllowed: Status = 405
    /// 406 (RFC 9110 section 15.5.7)
    public static let notAcceptable: Status = 406
    /// 408 (RFC 9110 section 15.5.9)
    public static let requestTimeout: Status = 408
    /// 409 (RFC 9110 section 15.5.10)
    public static let conflict: Status = 409
    /// 410 (RFC 9110 section 15.5.11)
    public static let gone: Status = 410
    /// 411 (RFC 9110 section 15.5.12)
    public static let lengthRequired: Status = 411
    /// 412 (RFC 9110 section 15.5.13)
    public static let preconditionFailed: Status = 412
    /// 413 (RFC 9110 section 15.5.14)
    public static let contentTooLarge: Status = 413
    /// 414 (RFC 9110 section 15.5.15)
    public static let uriTooLong: Status = 414
    /// 415 (RFC 9110 section 15.5.16)
    public static let unsupportedMediaType: Status = 415
    /// 416 (RFC 9110 section 15.5.17)
    public static let rangeNotSatisfiable: Status = 416
    /// 417 (RFC 9110 section 15.5.18)
    public static let expectationFailed: Status = 417
    /// 421 (RFC 9110 section 15.5.20)
    public static let misdirectedRequest: Status = 421
    /// 422 (RFC 9110 section 15.5.21)
    public static let unprocessableContent: Status = 422
    /// 423 (RFC 4918 section 11.3)
    public static let locked: Status = 423
    /// 425 (RFC 8470 section 5.2)
    public static let tooEarly: Status = 425
    /// 426 (RFC 9110 section 15.5.22)
    public static let upgradeRequired: Status = 426
    /// 428 (RFC 6585 section 3)
    public static let preconditionRequired: Status = 428
    /// 429 (RFC 6585 section 4)
    public static let tooManyRequests: Status = 429
    /// 431 (RFC 6585 section 5)
    public static let requestHeaderFieldsTooLarge: Status = 431
    /// 500 (RFC 9110 section 15.6.1)
    public static let internalServerError: Status = 500
    /// 501 (RFC 9110 section 15.6.2)
    public static let notImplemented: Status = 501
    /// 502 (RFC 9110 section 15.6.3)
    public static let badGateway: Status = 502
    /// 503 (RFC 9110 section 15.6.4)
    public static let serviceUnavailable: Status = 503
    /// 504 (RFC 9110 section 15.6.5)
    public static let gatewayTimeout: Status = 504
    /// 505 (RFC 9110 section 15.6.6)
    public static let httpVersionNotSupported: Status = 505
    /// 507 (RFC 4918 section 11.5)
    public static let insufficientStorage: Status = 507

    /// The phrase of the IANA registry, for the status line and as a title. For other codes of 100…599 it is the name
    /// of the class, and for other numbers "Unknown".
    public var reasonPhrase: String {
        switch self {
        case .continue: "Continue"
        case .switchingProtocols: "Switching Protocols"
        case .uploadResumptionSupported: "Upload Resumption Supported"
        case .ok: "OK"
        case .created: "Created"
        case .accepted: "Accepted"
        case .noContent: "No Content"
        case .resetContent: "Reset Content"
        case .partialContent: "Partial Content"
        case .movedPermanently: "Moved Permanently"
        case .found: "Found"
        case .seeOther: "See Other"
        case .notModified: "Not Modified"
        case .temporaryRedirect: "Temporary Redirect"
        case .permanentRedirect: "Permanent Redirect"
        case .badRequest: "Bad Request"
        case .unauthorized: "Unauthorized"
        case .forbidden: "Forbidden"
        case .notFound: "Not Found"
        case .methodNotAllowed: "Method Not Allowed"
        case .notAcceptable: "Not Acceptable"
        case .requestTimeout: "Request Timeout"
        case .conflict: "Conflict"
        case .gone: "Gone"
        case .lengthRequired: "Length Required"
        case .preconditionFailed: "Precondition Failed"
        case .contentTooLarge: "Content Too Large"
        case .uriTooLong: "URI Too Long"
        case .unsupportedMediaType: "Unsupported Media Type"
        case .rangeNotSatisfiable: "Range Not Satisfiable"
        case .expectationFailed: "Expectation Failed"
        case .misdirectedRequest: "Misdirected Request"
        case .unprocessableContent: "Unprocessable Content"
        case .locked: "Locked"
        case .tooEarly: "Too Early"
        case .upgradeRequired: "Upgrade Required"
        case .preconditionRequired: "Precondition Required"
        case .tooManyRequests: "Too Many Requests"
        case .requestHeaderFieldsTooLarge: "Request Header Fields Too Large"
        case .internalServerError: "Internal Server Error"
        case .notImplemented: "Not Implemented"
        case .badGateway: "Bad Gateway"
        case .serviceUnavailable: "Service Unavailable"
        case .gatewayTimeout: "Gateway Timeout"
        case .httpVersionNotSupported: "HTTP Version Not Supported"
        case .insufficientStorage: "Insufficient Storage"
        case _ where isInformational: "Informational"
        case _ where isSuccessful: "Successful"
        case _ where isRedirection: "Redirection"
        case _ where isClientError: "Client Error"
        case _ where isServerError: "Server Error"
        default: "Unknown"
        }
    }
}
