import HTTPSemantics

/// The client that a connection counts for when there are too many connections.
struct ConnectionClient: Sendable, Hashable, CustomStringConvertible {
    private enum Name: Hashable {
        /// An IPv4 address, or the /64 of an IPv6 address.
        case network(AddressBlock)
        /// A name of a proxy's own making, or the text of an address that cannot be parsed.
        case text(String)
        case unixSocket
    }

    private let name: Name
    /// Whether the connection is that of a trusted peer, a program on this machine or a proxy, and serves no request that was
    /// forwarded. Such connections are closed only if no others are open.
    let isExempt: Bool

    /// - Parameters:
    ///   - address: the client's address, or the name that a proxy has for the client; `nil` on a Unix socket.
    ///   - isExempt: see ``isExempt``.
    init(_ address: String?, isExempt: Bool) {
        self.isExempt = isExempt
        guard let address else {
            name = .unixSocket
            return
        }
        // A link-local address is reported with the interface that it is on.
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
