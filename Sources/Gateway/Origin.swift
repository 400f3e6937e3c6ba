import HTTPSemantics
import HTTPTransport
import SystemCalls

/// A server to which requests are forwarded.
public struct Origin: Sendable, Hashable, CustomStringConvertible {
    /// The address of the origin.
    enum Address: Sendable, Hashable {
        /// A URL with a scheme, a host and possibly a port.
        case url(String)
        /// The path of a Unix socket at which the origin accepts HTTP connections.
        case unix(String)
    }

    let address: Address
    /// The path of a PEM file with the certificates that are trusted instead of the system's; `nil`: those of the system.
    public var caFile: String?

    /// Parses `http://HOST[:PORT]`, `https://HOST[:PORT]` or `unix:/PATH`.
    /// - Throws: ``SettingError`` that describes the mistake.
    public init(parsing text: String) throws(SettingError) {
        let (origin, target) = try Self.parse(text)
        guard target == "/", !text.hasSuffix("?") else {
            throw SettingError(
                "'\(text)': an origin has no path, because paths are forwarded unchanged; give \(origin)")
        }
        self = origin
    }

    private init(_ address: Address) { self.address = address }

    /// Parses an origin and the path and query after it. A colon separates a Unix socket from the path after it.
    /// - Parameter expected: the expected form of the text, for the message of the error.
    static func parse(
        _ text: String, expected: String = "an origin: give http://HOST:PORT, https://HOST:PORT or unix:/PATH"
    ) throws(SettingError) -> (Origin, target: String) {
        if text.hasPrefix("unix:") {
            let parts = text.dropFirst(5).split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            let target = parts.count > 1 ? String(parts[1]) : "/"
            guard let path = parts.first, path.hasPrefix("/"), path.utf8.count < 108, target.hasPrefix("/") else {
                throw SettingError("'\(text)': give the absolute path of a socket, at most 107 bytes, after unix:")
            }
            return (Origin(.unix(String(path))), target)
        }
        guard let target = RequestTarget(parsing: text), target.form == .absolute, let authority = target.authority,
            let scheme = target.scheme
        else { throw SettingError("'\(text)' is not \(expected)") }
        return (Origin(.url("\(scheme)://\(authority)")), target.path + (target.query.map { "?" + $0 } ?? ""))
    }

    /// The origin in the notation of ``init(parsing:)``.
    public var description: String {
        switch address {
        case .url(let url): url
        case .unix(let path): "unix:" + path
        }
    }

    /// The URL to which a request is sent. Its path does not matter, because the target is sent separately.
    var url: String { if case .url(let url) = address { url + "/" } else { "http://localhost/" } }

    /// The settings of connections to the origin.
    /// - Parameter connectTimeout: the maximum time to make a connection.
    func settings(connectTimeout: Duration) -> TransportSettings {
        // The environment must not redirect these connections to a proxy.
        var settings = TransportSettings(proxy: "", httpVersion: .http1, connectTimeout: connectTimeout)
        settings.caFile = caFile.map { FilePath($0) }
        if case .unix(let path) = address { settings.unixSocket = FilePath(path) }
        return settings
    }
}

/// A mistake in the settings of routes.
public struct SettingError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The mistake in a sentence.
    public let description: String

    init(_ description: String) { self.description = description }
}
