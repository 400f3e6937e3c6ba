import HTTPSemantics

/// Whose word counts about where a request came from, and what follows from it.
///
/// What proxies say in `Forwarded` (RFC 7239) and `X-Forwarded-…` counts where the connection comes from one of them, and
/// there as far as the chain of trusted addresses reaches: everything before that may have been written by the client.
/// From anybody else it counts for nothing. It never makes a request more than it is: who may do what is decided by tokens.
struct TrustedProxies: Sendable {
    private let blocks: [AddressBlock]

    /// - Parameter blocks: addresses of proxies, beside those of this machine, which are trusted always.
    init(_ blocks: [AddressBlock] = []) { self.blocks = AddressBlock.loopback + blocks }

    /// What is known of a request that arrives on a connection from `peer`.
    ///
    /// - Parameter peer: the numeric address; `nil` on a Unix socket, which whoever may open the file has put a proxy at.
    func origin(of fields: Fields, peer: String?) -> RequestOrigin {
        guard trusts(peer: peer) else { return RequestOrigin(client: peer) }
        let standard = last(of: standardHops(fields))
        let usual = last(of: usualHops(fields))
        var origin = RequestOrigin(client: peer)
        // A proxy sets one of them and may let the client's own line in the other one pass: which it is cannot be told.
        if let node = standard?.client ?? usual?.client, (usual?.client ?? node) == node {
            origin = RequestOrigin(client: "\(node)", proxy: peer ?? "unix")
        }
        origin.scheme = agreed(standard?.scheme, only("X-Forwarded-Proto", of: fields).flatMap(scheme))
        origin.host = agreed(standard?.host, only("X-Forwarded-Host", of: fields).flatMap(Authority.init(parsing:)))
        origin.base = only("X-Forwarded-Prefix", of: fields).flatMap(PublicBase.init(prefix:)) ?? PublicBase()
        return origin
    }

    /// The client that a connection from `peer` counts for while it serves no forwarded request.
    func client(ofPeer peer: String?) -> ConnectionClient { ConnectionClient(peer, isExempt: trusts(peer: peer)) }

    /// The client that a connection from a trusted peer counts for while it serves a request with these fields; `nil`: the
    /// request was not forwarded, and the connection counts for its peer.
    func client(of fields: Fields, origin: RequestOrigin) -> ConnectionClient? {
        guard fields.contains(where: { Self.isForwardingField($0.name) }) else { return nil }
        return ConnectionClient(origin.client, isExempt: false)
    }

    private func trusts(peer: String?) -> Bool {
        // A link-local address is reported with the interface that it is on.
        guard let peer else { return true }
        return IPAddress(parsing: String(peer.prefix { $0 != "%" })).map(trusts) ?? false
    }

    private func trusts(_ address: IPAddress) -> Bool { blocks.contains { $0.contains(address) } }

    // MARK: Hops, the proxy next to us first

    /// The last hop whose word counts: each one has to be named by a trusted one, and to name somebody.
    private func last(of hops: [ForwardedElement]) -> ForwardedElement? {
        var result: ForwardedElement?
        for hop in hops {
            guard let client = hop.client else { return result ?? hop }
            result = hop
            guard case .address(let address) = client, trusts(address) else { return result }
        }
        return result
    }

    private func standardHops(_ fields: Fields) -> [ForwardedElement] {
        var hops: [ForwardedElement] = []
        for line in fields.values("Forwarded").reversed() {
            guard let elements = ForwardedElement.elements(parsing: line) else { return hops }
            hops += elements.reversed()
        }
        return hops
    }

    private func usualHops(_ fields: Fields) -> [ForwardedElement] {
        var hops: [ForwardedElement] = []
        for node in ForwardedNode.nodes(parsingUnstandardized: fields["X-Forwarded-For"] ?? "").reversed() {
            guard let node else { return hops }
            hops.append(ForwardedElement(client: node))
        }
        return hops
    }

    private func scheme(_ value: String) -> String? { ["http", "https"].first { $0 == value.lowercased() } }

    /// The value of a field that has one line. Where there are two, the client may have sent one of them.
    private func only(_ name: String, of fields: Fields) -> String? {
        let values = fields.values(name)
        return values.count == 1 ? values[0] : nil
    }

    /// What is said in one way, or in both ways alike.
    private func agreed<Value: Equatable>(_ one: Value?, _ other: Value?) -> Value? {
        guard let one, let other else { return one ?? other }
        return one == other ? one : nil
    }

    /// Whether a field tells of proxies that a request came through.
    static func isForwardingField(_ name: String) -> Bool {
        let name = name.lowercased()
        return name == "forwarded" || name == "via" || name == "x-real-ip" || name.hasPrefix("x-forwarded-")
    }
}
