import HTTPSemantics
import HTTPTransport
import SystemCalls

/// The place of objects:
/// `s3://BUCKET[/PREFIX][?endpoint=URL&public-endpoint=URL&region=REGION&style=path|host&ca-file=PATH]`.
///
/// - `endpoint`: the URL of the service, http or https, without a path. Default: Amazon S3 in the region.
/// - `public-endpoint`: the URL of the service in presigned URLs. Default: `endpoint`.
/// - `region`: the region in signatures. Required without `endpoint`; otherwise the default is `us-east-1`.
/// - `style`: `path` or `host`, the part of URLs that contains the bucket. Default: `path` if `endpoint` is given or the
///   name of the bucket has a period, otherwise `host`.
/// - `ca-file`: the path of a PEM file with certificates to trust instead of the system's.
///
/// Values are percent-encoded if they contain `&` or `%`. A URI contains no secrets: see ``ObjectCredentials``.
package struct ObjectStorageURI: Sendable, Hashable {
    package enum Style: String, Sendable { case path, host }

    /// A mistake in the URI. The text does not contain the URI.
    package struct Mistake: Error, Sendable, Hashable, CustomStringConvertible {
        package let description: String

        init(_ description: String) { self.description = description }
    }

    package let bucket: String
    /// The text before the keys of all objects: empty, or with a slash at its end.
    package let prefix: String
    package let region: String
    package let style: Style
    package let caFile: String?
    /// The scheme, host and port of the service.
    let endpoint: RequestURI
    /// The scheme, host and port in presigned URLs.
    private let publicEndpoint: RequestURI

    /// - Throws: a mistake that an operator can correct.
    package init(parsing text: String) throws(Mistake) {
        guard text.hasPrefix("s3://") else { throw Mistake("the URI of an object storage begins with s3://BUCKET") }
        let parts = text.dropFirst(5).split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        let place = parts[0].split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard !text.contains("#"), !place[0].contains("@"), !place[0].contains(":") else {
            throw Mistake(
                "the URI must be s3://BUCKET/PREFIX?SETTINGS, without '#', and without a user name or a port before the prefix; "
                    + Self.placeOfSecrets)
        }
        bucket = String(place[0])
        guard Self.isValidBucket(bucket) else {
            throw Mistake(
                "the name of a bucket has 3 to 63 lower-case letters, digits, hyphens and periods, and begins and ends with a letter or digit"
            )
        }
        let path = place.count > 1 ? try Self.decoded(place[1]) : ""
        let segments = path.split(separator: "/", omittingEmptySubsequences: false)
        let names = segments.last == "" ? segments.dropLast() : segments[...]
        guard !names.contains(where: { ["", ".", ".."].contains($0) }), path.utf8.count <= 512 else {
            throw Mistake("the prefix must have at most 512 bytes and no part that is empty, '.' or '..'")
        }
        prefix = names.map { $0 + "/" }.joined()

        let options = try Self.options(parts.count > 1 ? parts[1] : "")
        guard options["region"] != nil || options["endpoint"] != nil else {
            throw Mistake("region=… is required if there is no endpoint=…")
        }
        region = options["region"] ?? "us-east-1"
        guard !region.isEmpty, region.utf8.allSatisfy({ $0.isUnreserved }) else {
            throw Mistake("the region is invalid")
        }
        let address = options["endpoint"] ?? "https://s3.\(region).amazonaws.com\(region.hasPrefix("cn-") ? ".cn" : "")"
        endpoint = try Self.endpoint(address)
        publicEndpoint = try options["public-endpoint"].map(Self.endpoint) ?? endpoint
        // The certificate of Amazon S3 is valid for names with one label before the service.
        let usual = options["endpoint"] != nil || bucket.contains(".") ? Style.path : .host
        guard let style = options["style"].map({ Style(rawValue: $0) }) ?? usual else {
            throw Mistake("style must be path or host")
        }
        self.style = style
        caFile = options["ca-file"]
        guard caFile != "" else { throw Mistake("ca-file needs the path of a file") }
    }

    private static let placeOfSecrets =
        "keys belong in the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY)"
        + " or in the shared credentials file (AWS_SHARED_CREDENTIALS_FILE)"

    private static func isValidBucket(_ name: String) -> Bool {
        let bytes = Array(name.utf8)
        func isLetterOrDigit(_ byte: UInt8?) -> Bool {
            byte.map { UInt8(ascii: "a")...UInt8(ascii: "z") ~= $0 || UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }
                == true
        }
        return 3...63 ~= bytes.count && isLetterOrDigit(bytes.first) && isLetterOrDigit(bytes.last)
            && bytes.allSatisfy { isLetterOrDigit($0) || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: ".") }
    }

    private static func options(_ query: Substring) throws(Mistake) -> [String: String] {
        var options: [String: String] = [:]
        for part in query.split(separator: "&") {
            let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let name = String(pair[0])
            guard pair.count == 2, ["endpoint", "public-endpoint", "region", "style", "ca-file"].contains(name) else {
                // The text does not repeat the name: it may be a secret.
                throw Mistake(
                    "the settings after '?' are endpoint=, public-endpoint=, region=, style= and ca-file=; "
                        + placeOfSecrets)
            }
            guard options[name] == nil else { throw Mistake("\(name)= occurs twice") }
            options[name] = try decoded(pair[1])
        }
        return options
    }

    private static func endpoint(_ text: String) throws(Mistake) -> RequestURI {
        guard let uri = RequestURI(text), !text.contains("#"), !text.contains("?") else {
            throw Mistake("the endpoint is not a URL with http or https")
        }
        guard uri.userinfo == nil, !text.contains("@") else {
            throw Mistake("the endpoint contains a user name; " + placeOfSecrets)
        }
        let afterScheme = text.dropFirst(uri.scheme.utf8.count + 3)
        guard !afterScheme.contains("/") || afterScheme.firstIndex(of: "/") == afterScheme.indices.last else {
            throw Mistake(
                "the endpoint must not have a path; the bucket and the prefix are in the URI before the settings")
        }
        return uri
    }

    private static func decoded(_ text: Substring) throws(Mistake) -> String {
        guard let bytes = text.utf8.percentDecoded, let value = String(validating: bytes, as: UTF8.self),
            !value.unicodeScalars.contains(where: { $0.value < 0x20 || $0.value == 0x7F })
        else {
            throw Mistake(
                "a percent sign is not followed by two hexadecimal digits, or a value is not UTF-8 or contains control characters"
            )
        }
        return value
    }

    // MARK: Requests

    /// The host, and the port if it is not the default of the scheme, as in the field `Host`.
    var host: String { host(of: endpoint) }

    private func host(of endpoint: RequestURI) -> String {
        let isDefault = endpoint.port == (endpoint.scheme == "https" ? 443 : 80)
        let authority = endpoint.authority
        let name = isDefault ? String(authority[..<(authority.lastIndex(of: ":") ?? authority.endIndex)]) : authority
        return style == .host ? "\(bucket).\(name)" : name
    }

    /// The scheme and host of all requests, with a slash at its end.
    var root: String { "\(endpoint.scheme)://\(host)/" }

    /// The host in presigned URLs, as in the field `Host`.
    var publicHost: String { host(of: publicEndpoint) }

    /// The scheme and host of presigned URLs, with a slash at its end.
    var publicRoot: String { "\(publicEndpoint.scheme)://\(publicHost)/" }

    /// The path of an object before percent-encoding; of the bucket if `key` is `nil`.
    func path(of key: String?) -> String {
        (style == .path ? "/" + bucket : "") + (key.map { "/" + prefix + $0 } ?? (style == .path ? "" : "/"))
    }
}

extension ObjectStorageURI: CustomStringConvertible {
    /// The bucket, prefix and host, for operators.
    package var description: String { "s3://\(bucket)/\(prefix) at \(endpoint.authority)" }
}
