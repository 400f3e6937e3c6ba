import Foundation
import HTTPSemantics
import HTTPTransport
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
    /// The URI for messages: its query is hidden, and with `hidingPath` also its path.
    func description(hidingPath isPathHidden: Bool) -> String {
        if isPathHidden { return root + TransferRecord.hidden }
        let query = text.utf8.firstIndex(of: UInt8(ascii: "?"))
        return query.map { text[..<$0] + "?" + TransferRecord.hidden } ?? text
    }
}

extension Fields {
    /// Registered fields with credentials.
    private static let secrets: Set<String> = [
        "authorization", "proxy-authorization", "authentication-info", "proxy-authentication-info", "cookie",
        "cookie2", "set-cookie", "set-cookie2", "dpop", "signature", "signature-input",
    ]
    /// Words in names of fields with credentials.
    private static let secretWords = [
        "token", "secret", "password", "passwd", "credential", "session", "csrf", "xsrf",
    ].map { Array($0.utf8) }
    /// Fields that are known to contain no credentials, besides those with the prefixes in ``isHarmless(_:)``.
    private static let harmless: Set<String> = [
        "accept", "cache-control", "host", "last-modified", "pragma", "prefer", "priority", "range", "repr-digest",
        "user-agent",
    ]
    /// Fields of framing and connections.
    private static let framing: Set<String> = [
        "content-length", "content-range", "transfer-encoding", "te", "trailer", "connection", "keep-alive", "upgrade",
        "expect",
    ]

    /// Whether a field of this name may authorize a client that knows its value.
    ///
    /// These are some registered fields, and all fields whose names suggest a token, a key or a signature.
    static func isSecret(_ name: String) -> Bool {
        let name = name.lowercased()
        let bytes = Array(name.utf8)
        return secrets.contains(name) || name.hasSuffix("-key") || name.hasSuffix("apikey")
            || name.hasSuffix("-signature") || name.split(separator: "-").contains("auth")
            || secretWords.contains { word in bytes.indices.contains { bytes[$0...].starts(with: word) } }
    }

    /// Whether the value of a field of this name is known to contain no credentials, so that other origins and readers
    /// of resume data may see it. An unknown field may contain credentials.
    static func isHarmless(_ name: String) -> Bool {
        let name = name.lowercased()
        guard !isSecret(name) else { return false }
        return harmless.contains(name) || belongsToTransfer(name)
            || ["accept-", "content-", "if-", "want-"].contains { name.hasPrefix($0) }
    }

    /// The fields whose values are known to contain no credentials.
    var withoutSecrets: Fields {
        Fields(filter { Fields.isHarmless($0.name) }.map { ($0.name, $0.value) })
    }

    /// A copy in which the values of secret fields and of the fields in `names` are hidden.
    func hidingSecrets(_ names: Set<String> = []) -> Fields {
        Fields(
            map { field in
                let isHidden = Fields.isSecret(field.name) || names.contains(field.name.lowercased())
                return (field.name, isHidden ? TransferRecord.hidden : field.value)
            })
    }

    /// These fields followed by `others`, which replace fields of the same name.
    func merging(_ others: Fields) -> Fields {
        var result = self
        for field in others { result.remove(field.name) }
        for field in others { result.append(field.name, field.value) }
        return result
    }

    /// Whether a caller's field of this name belongs to the creation of an upload alone: it describes the
    /// representation or is a condition on the target.
    static func belongsToCreation(_ name: String) -> Bool {
        let name = name.lowercased()
        return name.hasPrefix("content-") || name.hasPrefix("if-")
            || ["repr-digest", "want-repr-digest", "want-content-digest", "last-modified"].contains(name)
    }

    /// Whether only the transfer sets a field of this name, and not the caller: fields of framing, connections and the
    /// upload protocol.
    static func belongsToTransfer(_ name: String) -> Bool {
        let name = name.lowercased()
        return framing.contains(name) || name.hasPrefix("upload-")
    }
}
