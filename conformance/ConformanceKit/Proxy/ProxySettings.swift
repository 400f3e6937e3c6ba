import TLS

/// The settings of a run of the proxy mode.
package struct ProxySettings: Sendable {
    /// The URL of the proxy.
    package var url: String
    /// The port of the scripted upstream; `nil` to test the proxy together with the server that is deployed behind it.
    package var upstreamPort: UInt16?
    /// The address of the scripted upstream.
    package var upstreamAddress = "127.0.0.1"
    /// The method of the requests that create an upload.
    package var method = "POST"
    /// The fields of every request.
    package var fields: [(String, String)] = []
    /// The certificates to trust if the URL is `https`.
    package var trust: TLSTrust = .system
    /// The time to wait for a message. If the message does not arrive in time, the report states that the proxy delays
    /// it.
    package var timeout: Duration = .seconds(2)

    package init(url: String) { self.url = url }
}
