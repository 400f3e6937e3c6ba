import HTTPSemantics

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
