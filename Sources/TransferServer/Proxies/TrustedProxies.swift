import HTTPSemantics

/// Determines the origin of requests from the fields of trusted proxies.
///
/// `Forwarded` (RFC 7239) and `X-Forwarded-…` are used only if the peer is a trusted proxy, and only as far as the
/// chain of trusted addresses reaches: the client may have written all earlier addresses. These fields never authorize
/// a request.
struct TrustedProxies: Sendable {
    private let blocks: [AddressBlock]

    /// - Parameter blocks: addresses of proxies. The loopback addresses are always trusted.
    init(_ blocks: [AddressBlock] = []) { self.blocks = AddressBlock.loopback + blocks }

    /// The origin of a request on a connection from `peer`.
    ///
    /// - Parameter peer: the numeric address; `nil` on a Unix socket, whose peers are trusted because only permitted
    ///   users can open it.
    func origin(of fields: Fields, peer: String?) -> RequestOrigin {
        guard Self.areForwarded(fields), trusts(peer: peer) else { return RequestOrigin(client: peer) }
        let standard = nearestUntrusted(in: forwardedHops(fields))
        let unstandardized = nearestUntrusted(in: xForwardedForHops(fields))
        var origin = RequestOrigin(client: peer)
        // A proxy sets one of the fields and may forward the other one from the client. If they differ, neither is
        // used.
        if let node = standard?.client ?? unstandardized?.client, (unstandardized?.client ?? node) == node {
            origin = RequestOrigin(client: "\(node)", proxy: peer ?? "unix")
        }
        origin.scheme = commonValue(standard?.scheme, only("X-Forwarded-Proto", of: fields).flatMap(scheme))
        origin.host = commonValue(
            standard?.host, only("X-Forwarded-Host", of: fields).flatMap(Authority.init(parsing:)))
        origin.base = only("X-Forwarded-Prefix", of: fields).flatMap(PublicBase.init(prefix:)) ?? PublicBase()
        return origin
    }

    /// The fields with which a request is forwarded (RFC 7239, RFC 9110 section 7.6.3). This server adds its part to
    /// the fields of a trusted peer, and replaces the fields of any other peer, except for `Via`.
    /// - Parameters:
    ///   - host: the authority that was requested from this server.
    ///   - scheme: the scheme of the connection.
    func forwardedFields(of fields: Fields, peer: String?, host: String?, scheme: String) -> Fields {
        let isTrusted = trusts(peer: peer)
        func received(_ name: String) -> [String] { isTrusted ? fields.values(name) : [] }
        func list(_ values: [String], _ own: String) -> String {
            values.isEmpty ? own : (values + [own]).joined(separator: ", ")
        }
        let node = peer.map { String($0.prefix { $0 != "%" }) }
        var element = "for=" + (node.map { $0.contains(":") ? "\"[\($0)]\"" : $0 } ?? "unknown")
        if let host { element += ";host=" + (Fields.isValidName(host) ? host : "\"\(host)\"") }
        element += ";proto=" + scheme
        var result = Fields()
        result.append("Forwarded", list(received("Forwarded"), element))
        result.append("X-Forwarded-For", list(received("X-Forwarded-For"), node ?? "unknown"))
        result.append("X-Forwarded-Proto", received("X-Forwarded-Proto").first ?? scheme)
        if let host = received("X-Forwarded-Host").first ?? host { result.append("X-Forwarded-Host", host) }
        for name in ["X-Forwarded-Prefix", "X-Forwarded-Port", "X-Real-IP"] {
            for value in received(name) { result.append(name, value) }
        }
        result.append("Via", list(fields.values("Via"), "1.1 onward"))
        return result
    }

    /// The client for which a connection from `peer` is counted while it serves no forwarded request.
    func client(ofPeer peer: String?) -> ConnectionClient { ConnectionClient(peer, isExempt: trusts(peer: peer)) }

    /// The client for which a connection from a trusted peer is counted while it serves a request with these fields;
    /// `nil`: the request was not forwarded, and the connection is counted for its peer.
    func client(of fields: Fields, origin: RequestOrigin) -> ConnectionClient? {
        guard Self.areForwarded(fields) else { return nil }
        return ConnectionClient(origin.client, isExempt: false)
    }

    private func trusts(peer: String?) -> Bool {
        // A link-local address has the name of its interface as a suffix.
        guard let peer else { return true }
        return IPAddress(parsing: String(peer.prefix { $0 != "%" })).map(trusts) ?? false
    }

    private func trusts(_ address: IPAddress) -> Bool { blocks.contains { $0.contains(address) } }

    // MARK: Hops, starting with the nearest proxy

    /// Returns the first element whose client is not a trusted proxy, or the last element if there is none. The search
    /// ends before an element without a client.
    private func nearestUntrusted(in hops: [ForwardedElement]) -> ForwardedElement? {
        var result: ForwardedElement?
        for hop in hops {
            guard let client = hop.client else { return result ?? hop }
            result = hop
            guard case .address(let address) = client, trusts(address) else { return result }
        }
        return result
    }

    private func forwardedHops(_ fields: Fields) -> [ForwardedElement] {
        var hops: [ForwardedElement] = []
        for line in fields.values("Forwarded").reversed() {
            guard let elements = ForwardedElement.elements(parsing: line) else { return hops }
            hops += elements.reversed()
        }
        return hops
    }

    private func xForwardedForHops(_ fields: Fields) -> [ForwardedElement] {
        var hops: [ForwardedElement] = []
        for node in ForwardedNode.nodes(parsingUnstandardized: fields["X-Forwarded-For"] ?? "").reversed() {
            guard let node else { return hops }
            hops.append(ForwardedElement(client: node))
        }
        return hops
    }

    private func scheme(_ value: String) -> String? { ["http", "https"].first { $0 == value.lowercased() } }

    /// The value of a field with exactly one line. If there are several lines, the client may have sent some of them.
    private func only(_ name: String, of fields: Fields) -> String? {
        let values = fields.values(name)
        return values.count == 1 ? values[0] : nil
    }

    /// The value that only one of two fields has, or that both have; `nil` if their values differ.
    private func commonValue<Value: Equatable>(_ one: Value?, _ other: Value?) -> Value? {
        guard let one, let other else { return one ?? other }
        return one == other ? one : nil
    }

    /// Whether a field is set by proxies that forward requests.
    static func isForwardingField(_ name: String) -> Bool {
        name.equalsIgnoringASCIICase("Forwarded") || name.equalsIgnoringASCIICase("Via")
            || name.equalsIgnoringASCIICase("X-Real-IP") || name.hasPrefixIgnoringASCIICase("X-Forwarded-")
    }

    /// Whether the fields are those of a request that a proxy has forwarded.
    static func areForwarded(_ fields: Fields) -> Bool { fields.contains { isForwardingField($0.name) } }
}

/// The origin of a request, as far as it is trusted.
struct RequestOrigin: Sendable, Hashable {
    /// The address of the client, or its name from a trusted proxy; `nil`: the client is on this machine and uses a
    /// Unix socket.
    let client: String?
    /// The address of the proxy, or `unix`, if the peer of the connection is a proxy; otherwise `nil`.
    let proxy: String?
    /// The scheme and host of the client's request, as the proxy reports them.
    var scheme: String?
    var host: Authority?
    /// The prefix that the proxy removed from paths.
    var base = PublicBase()

    init(client: String?, proxy: String? = nil) {
        self.client = client
        self.proxy = proxy
    }
}

/// The base of the server's paths in URLs for clients: nothing, a prefix that a proxy removes, or a complete URL.
public struct PublicBase: Sendable, Hashable, CustomStringConvertible {
    /// The base: empty, `/prefix` or `https://host/prefix`, without a slash at its end.
    public let description: String

    /// An empty base: clients use the paths of the server.
    public init() { description = "" }

    /// Parses a URL such as `https://files.example/inbox/`, as in `--public-url`. Returns `nil` if the scheme is not
    /// http or https, the URL has user information, a query or a fragment, or the path is invalid.
    public init?(url: String) {
        guard let target = RequestTarget(parsing: url), target.form == .absolute, target.query == nil,
            let scheme = target.scheme, let authority = target.authority.flatMap(Authority.init(parsing:)),
            let path = Self.prefix(target.path)
        else { return nil }
        description = "\(scheme)://\(authority.serialized)\(path)"
    }

    /// Parses a prefix such as `/inbox`, as in `X-Forwarded-Prefix`. Returns `nil` if the prefix is not a valid path.
    /// Two slashes in a row are also invalid, because they would begin the name of another host.
    public init?(prefix: String) {
        guard let path = Self.prefix(prefix) else { return nil }
        description = path
    }

    private static func prefix(_ path: String) -> String? {
        guard let segments = try? PathSegments(decoding: path).segments else { return nil }
        return segments.isEmpty ? "" : (try? PathSegments(segments: segments))?.percentEncoded
    }

    /// The URL or relative reference of a path of the server for clients.
    public func reference(to path: String) -> String { description + path }

    /// The path of the base, without a slash at its end.
    var path: String { String(description.dropFirst(root.utf8.count)) }

    /// `https://host` of a complete URL; otherwise empty.
    private var root: Substring {
        guard let scheme = description.firstRange(of: "://") else { return "" }
        return description[..<(description[scheme.upperBound...].firstIndex(of: "/") ?? description.endIndex)]
    }

    /// The scheme and the authority of a complete URL.
    var origin: (scheme: String, authority: String)? {
        guard let scheme = root.firstRange(of: "://") else { return nil }
        return (String(root[..<scheme.lowerBound]), String(root[scheme.upperBound...]))
    }

    /// The fields of a response, with this base before paths of the server.
    /// - Parameter prefix: the beginning of these paths.
    func rebased(_ fields: Fields, below prefix: String = "/") -> Fields {
        guard !description.isEmpty else { return fields }
        var fields = fields
        for name in ["Location", "Content-Location"] {
            guard let value = fields[name], value.hasPrefix(prefix), !value.hasPrefix("//") else { continue }
            fields.set(name, reference(to: value))
        }
        return fields
    }
}
