import HTTPSemantics

/// Where a request came from, as far as that can be believed.
struct RequestOrigin: Sendable, Hashable {
    /// The client's address, or the name that a trusted proxy has for it; `nil`: it is on this machine, behind a Unix
    /// socket.
    let client: String?
    /// The peer of the connection where that is not the client but a proxy: its address, or `unix`.
    let proxy: String?
    /// What the client asked, as the proxy tells it.
    var scheme: String?
    var host: Authority?
    /// What the proxy took off the front of paths.
    var base = PublicBase()

    init(client: String?, proxy: String? = nil) {
        self.client = client
        self.proxy = proxy
    }
}
