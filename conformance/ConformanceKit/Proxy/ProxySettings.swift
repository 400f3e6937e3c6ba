import TLS

/// What the person who runs the proxy mode asks for.
package struct ProxySettings: Sendable {
    /// Where the proxy is spoken to.
    package var url: String
    /// Where the proxy's upstream is played; nil where a server is behind it, which is judged together with it.
    package var upstreamPort: UInt16?
    /// The address at which the upstream is played.
    package var upstreamAddress = "127.0.0.1"
    /// The method of creations.
    package var method = "POST"
    /// Fields of every request.
    package var fields: [(String, String)] = []
    /// Whom to believe where the URL is `https`.
    package var trust: TLSTrust = .system
    /// How long to wait for something before it counts as withheld.
    package var patience: Duration = .seconds(2)

    package init(url: String) { self.url = url }
}
