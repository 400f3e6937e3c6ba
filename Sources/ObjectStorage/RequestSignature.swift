import Digests
import HTTPSemantics

/// A request as it is signed and sent: everything that a signature of version 4 covers.
///
/// Path and query are percent-encoded once, as S3 requires, and are sent in the form in which they are signed.
struct CanonicalRequest {
    var method: Method
    /// The path before percent-encoding; it begins with a slash. Slashes are not encoded.
    var path: String
    /// Names and values before percent-encoding, in any order.
    var query: [(name: String, value: String)] = []
    /// The fields that are signed. `Host` must be among them.
    var fields: [(name: String, value: String)]
    /// SHA-256 of the content in hexadecimal, or `UNSIGNED-PAYLOAD`.
    var contentDigest: String

    static let emptyDigest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    static let unsignedContent = "UNSIGNED-PAYLOAD"

    var encodedPath: String { path.utf8.percentEncoded { $0.isUnreserved || $0 == UInt8(ascii: "/") } }

    /// The query, sorted by the bytes of the encoded names and values.
    var encodedQuery: String {
        let pairs = query.map { (Self.encoded($0.name), Self.encoded($0.value)) }
        let sorted = pairs.sorted { left, right in
            left.0 == right.0
                ? left.1.utf8.lexicographicallyPrecedes(right.1.utf8)
                : left.0.utf8.lexicographicallyPrecedes(right.0.utf8)
        }
        return sorted.map { "\($0.0)=\($0.1)" }.joined(separator: "&")
    }

    /// The request target that is sent.
    var target: String { query.isEmpty ? encodedPath : encodedPath + "?" + encodedQuery }

    /// The names of the fields in lower case, sorted.
    var signedNames: String { sortedFields.map(\.name).joined(separator: ";") }

    /// The text whose digest is signed.
    var text: String {
        let lines = sortedFields.map { "\($0.name):\(Self.collapsed($0.value))\n" }.joined()
        return [method.rawValue, encodedPath, encodedQuery, lines, signedNames, contentDigest].joined(separator: "\n")
    }

    private var sortedFields: [(name: String, value: String)] {
        fields.map { (name: $0.name.lowercased(), value: $0.value) }.sorted { $0.name < $1.name }
    }

    private static func encoded(_ text: String) -> String { text.utf8.percentEncoded(allowing: \.isUnreserved) }

    /// The value without spaces at its ends, and with one space in place of several.
    private static func collapsed(_ value: String) -> String { value.split(separator: " ").joined(separator: " ") }
}

/// The keys with which requests are signed.
struct AccessKeys: Sendable, Hashable {
    var identifier: String
    var secret: String
    /// The token of temporary keys.
    var sessionToken: String?
}

/// Descriptions and dumps contain only the identifier.
extension AccessKeys: CustomStringConvertible, CustomReflectable {
    var description: String { identifier }
    var customMirror: Mirror { Mirror(self, children: ["identifier": identifier]) }
}

/// A signature of version 4 ("AWS4-HMAC-SHA256") for one second, region and service.
struct RequestSignature {
    let keys: AccessKeys
    let region: String
    let service: String
    /// The time of the request in UTC, such as `20130524T000000Z`.
    let time: String

    /// - Parameter seconds: the time of the request in seconds since 1970.
    init(_ keys: AccessKeys, region: String, service: String = "s3", at seconds: Int64) {
        self.keys = keys
        self.region = region
        self.service = service
        time = HTTPDate(secondsSinceEpoch: seconds).internetDate.filter { $0 != "-" && $0 != ":" }
    }

    private static let algorithm = "AWS4-HMAC-SHA256"

    private var day: String { String(time.prefix(8)) }
    /// The day, region and service for which the derived key is valid.
    private var scope: String { "\(day)/\(region)/\(service)/aws4_request" }

    /// The value of `Authorization`.
    func authorization(for request: CanonicalRequest) -> String {
        "\(Self.algorithm) Credential=\(keys.identifier)/\(scope), SignedHeaders=\(request.signedNames), "
            + "Signature=\(signature(of: request))"
    }

    /// Adds the signature to the query, so that everyone who has the URL can send the request for some time.
    /// - Parameter seconds: the time for which the URL is valid, in seconds.
    func addQuery(validFor seconds: Int64, to request: inout CanonicalRequest) {
        request.query += [
            ("X-Amz-Algorithm", Self.algorithm), ("X-Amz-Credential", "\(keys.identifier)/\(scope)"),
            ("X-Amz-Date", time), ("X-Amz-Expires", "\(seconds)"), ("X-Amz-SignedHeaders", request.signedNames),
        ]
        if let token = keys.sessionToken { request.query.append(("X-Amz-Security-Token", token)) }
        request.query.append(("X-Amz-Signature", signature(of: request)))
    }

    func signature(of request: CanonicalRequest) -> String {
        let digest = Array(request.text.utf8).sha256.hexadecimal
        let text = [Self.algorithm, time, scope, digest].joined(separator: "\n")
        let key = [day, region, service, "aws4_request"].reduce(Array("AWS4\(keys.secret)".utf8)) { key, part in
            MessageAuthentication.sha256(of: Array(part.utf8), key: key)
        }
        return MessageAuthentication.sha256(of: Array(text.utf8), key: key).hexadecimal
    }
}

extension [UInt8] {
    var sha256: [UInt8] {
        var digest = RunningDigest(.sha256)
        withUnsafeBytes { digest.update($0) }
        return digest.finalized()
    }
}
