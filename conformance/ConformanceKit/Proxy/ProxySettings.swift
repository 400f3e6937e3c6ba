import TLS

/// What the person who runs the proxy mode asks for.
package struct ProxySettings: Sendable {
    /// Where the proxy is spoken to.
    package var url: String
    /// Where the scripted upstream of the proxy is; nil where a server is behind it, which is verified together with it.
    package var upstreamPort: UInt16?
    /// The address of the scripted upstream.
    package var upstreamAddress = "127.0.0.1"
    /// The method of creations.
    package var method = "POST"
    /// Fields of every request.
    package var fields: [(String, String)] = []
    /// Which certificates to trust if the URL is `https`.
    package var trust: TLSTrust = .system
    /// How long to wait for something before it counts as withheld.
    package var timeout: Duration = .seconds(2)

    package init(url: String) { self.url = url }
}
