import HTTPTransport
import Foundation
import HTTPSemantics
import ResumableUpload

/// The request of a caller: its URI, method and fields.
public struct TransferRequest: Sendable, Hashable {
    /// An absolute URI with the scheme `http` or `https`. A user and password in it become a Basic `Authorization`
    /// field for its origin (RFC 7617) and are never stored.
    public var uri: String
    /// The method of a download, or of the request that creates an upload. An upload uses POST if this is GET.
    public var method: Method
    /// The fields of the request. Fields that describe the representation (`Content-Type`, `Content-Disposition`,
    /// `Repr-Digest`, …) and conditions are sent only with the creation of an upload, all others with every request.
    /// Resume data and requests to other origins contain only fields that are known to contain no credentials
    /// (`Accept…`, `User-Agent`, `Content-…`, conditions, and a few more). Give the other fields again when the
    /// transfer is resumed.
    public var fields: Fields
    /// The digests of the complete representation that the caller expects; empty: none.
    ///
    /// An upload sends them as `Repr-Digest` (RFC 9530), in place of a field of that name in ``fields``, so that the
    /// server can verify the bytes. A download compares them with the file before the file gets its name; if one
    /// differs, the download ends with `digestMismatch` and the received bytes are deleted. Resume data contains them.
    /// A digest with a wrong number of bytes ends the transfer with `invalidRequest`.
    public var expectedDigests: [DigestAlgorithm: [UInt8]] = [:]

    /// A request for a URI.
    /// - Parameters:
    ///   - uri: an absolute http or https URI. A transfer of any other text fails with `invalidRequest`.
    ///   - method: as ``method``.
    ///   - fields: as ``fields``.
    public init(_ uri: String, method: Method = .get, fields: Fields = [:]) {
        self.uri = uri
        self.method = method
        self.fields = fields
    }

    /// A request for a URL.
    /// - Parameters:
    ///   - url: an absolute http or https URL. A transfer of any other URL fails with `invalidRequest`.
    ///   - method: as ``method``.
    ///   - fields: as ``fields``.
    public init(_ url: URL, method: Method = .get, fields: Fields = [:]) {
        self.init(url.absoluteString, method: method, fields: fields)
    }
}

extension TransferRequest {
    /// The expected digests as the value of `Repr-Digest`; `nil` if there are none.
    var digestField: DigestField? {
        guard !expectedDigests.isEmpty else { return nil }
        return DigestField(
            values: DigestAlgorithm.allCases.compactMap { algorithm in
                expectedDigests[algorithm].map { (algorithm, $0) }
            })
    }

    /// Whether each expected digest has the number of bytes of its algorithm.
    var hasValidDigests: Bool { expectedDigests.allSatisfy { $0.value.count == $0.key.size } }
}

/// A final response with the kept part of its content.
public struct TransferResponse: Sendable, Hashable {
    /// The status code (RFC 9110 section 15).
    public var status: Status
    /// The fields of the header section, in order.
    public var fields: Fields
    /// The content, or its first 1 MiB.
    public var content: [UInt8]

    /// A response with the kept part of its content.
    public init(status: Status, fields: Fields, content: [UInt8] = []) {
        self.status = status
        self.fields = fields
        self.content = content
    }

    init(_ head: ClientResponseHead, content: [UInt8] = []) {
        self.init(status: head.status, fields: head.fields, content: content)
    }
}

/// The head of one message, for an observer. Credentials and the URI of an upload resource are hidden.
public struct TransferRecord: Sendable {
    /// The first line of a message.
    #if hasAttribute(nonexhaustive)
        @nonexhaustive
    #endif
    public enum Message: Sendable, Hashable {
        /// The request line of a request.
        case request(Method, uri: String)
        /// The status line of a response, including 1xx.
        case response(Status, version: String)
    }

    /// The ``Transfer/id`` of the transfer that sends the request.
    public var transferID: UUID
    /// The request line or the status line.
    public var message: Message
    /// The fields of the message. Values that are secrets are replaced.
    public var fields: Fields

    init(_ message: Message, fields: Fields, of transferID: UUID) {
        self.transferID = transferID
        self.message = message
        self.fields = fields
    }

    /// The text that replaces a secret.
    static let hidden = "(hidden)"
}

extension RequestURI {
    /// Scheme, host and path without query, for messages. With `hidingPath` the result contains only the origin.
    func description(hidingPath: Bool) -> String {
        guard var components = URLComponents(string: text) else { return scheme + "://" + host }
        let hasQuery = components.percentEncodedQuery != nil
        components.percentEncodedQuery = nil
        if hidingPath { components.percentEncodedPath = "/" }
        let shown = components.string ?? scheme + "://" + host
        if hidingPath { return shown + TransferRecord.hidden }
        return hasQuery ? shown + "?" + TransferRecord.hidden : shown
    }
}
