import HTTPSemantics

/// The client for which a connection is counted when the server limits connections.
struct ConnectionClient: Sendable, Hashable, CustomStringConvertible {
    private enum Name: Hashable {
        /// An IPv4 address, or the /64 prefix of an IPv6 address.
        case network(AddressBlock)
        /// A name that a proxy generated, or an address that cannot be parsed.
        case text(String)
        case unixSocket
    }

    private let name: Name
    /// Whether the peer is trusted (a program on this machine or a proxy) and the current request was not forwarded.
    /// Connections of such a client are closed only if no other connections are open.
    let isExempt: Bool

    /// - Parameters:
    ///   - address: the address of the client, or its name from a proxy; `nil` on a Unix socket.
    ///   - isExempt: see ``isExempt``.
    init(_ address: String?, isExempt: Bool) {
        self.isExempt = isExempt
        guard let address else {
            name = .unixSocket
            return
        }
        // A link-local address has the name of its interface as a suffix.
        let parsed = IPAddress(parsing: String(address.prefix { $0 != "%" }))
        name = parsed.map { .network(AddressBlock(clientNetworkOf: $0)) } ?? .text(address)
    }

    var description: String {
        switch name {
        case .network(let block): block.address.isIPv4 ? "\(block.address)" : "\(block)"
        case .text(let text): text
        case .unixSocket: "a Unix socket"
        }
    }
}
