import HTTPSemantics
import SystemCalls
import TLS

/// The address, the value of Host, and the request target that belong to a URL.
package struct Endpoint: Sendable, Hashable {
    var address: SocketAddress
    package var authority: String
    /// The path and the query of the URL, in origin form.
    package var target: String
    /// The certificates to trust; `nil` without TLS.
    var trust: TLSTrust?
    /// The certificates to trust if a reference has the scheme `https`.
    private let trustElsewhere: TLSTrust

    /// Reads `http://host[:port]/path`, the same with `https`, and `unix:/socket:/path`. A fragment is dropped.
    package init?(_ url: String, trusting trust: TLSTrust = .system) {
        trustElsewhere = trust
        let text = url.prefix { $0 != "#" }
        if text.hasPrefix("unix:") {
            let remaining = text.dropFirst(5)
            guard let colon = remaining.firstIndex(of: ":"), colon > remaining.startIndex else { return nil }
            address = .unix(path: String(remaining[..<colon]))
            authority = "localhost"
            target = Self.originForm(remaining[remaining.index(after: colon)...])
            return
        }
        let isSecure = text.lowercased().hasPrefix("https://")
        guard isSecure || text.lowercased().hasPrefix("http://") else { return nil }
        self.trust = isSecure ? trust : nil
        let remaining = text.dropFirst(isSecure ? 8 : 7)
        let end = remaining.firstIndex { $0 == "/" || $0 == "?" } ?? remaining.endIndex
        guard let parsed = Authority(parsing: String(remaining[..<end])) else { return nil }
        guard let port = UInt16(exactly: parsed.port ?? (isSecure ? 443 : 80)), port > 0 else { return nil }
        let host = parsed.host
        address = .tcp(host: host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host, port: port)
        authority = String(remaining[..<end])
        target = Self.originForm(remaining[end...])
    }

    /// The URL of the endpoint.
    package var url: String {
        if case .unix(let path) = address { return "unix:\(path):\(target)" }
        return "\(scheme)://\(authority)\(target)"
    }

    var scheme: String { trust == nil ? "http" : "https" }

    /// The name or address for which the certificate has to be valid.
    var host: String {
        if case .tcp(let host, _) = address { host } else { "localhost" }
    }

    /// Resolves a reference, such as the value of Location, against the URL of this endpoint (RFC 3986 section 5.2).
    ///
    /// - Returns: `nil` for a scheme other than `http` and `https`.
    func resolving(_ reference: String) -> Endpoint? {
        let reference = String(reference.prefix { $0 != "#" })
        if ["http://", "https://"].contains(where: { reference.lowercased().hasPrefix($0) }) {
            var other = Endpoint(reference, trusting: trustElsewhere)
            if case .unix = address {
                other?.address = address
                other?.trust = nil
            }
            return other
        }
        if let colon = reference.firstIndex(of: ":"), !reference[..<colon].contains("/"),
            reference[..<colon].allSatisfy({ $0.isLetter || $0.isNumber || "+-.".contains($0) })
        {
            return nil
        }
        if reference.hasPrefix("//") { return resolving("\(scheme):\(reference)") }
        var resolved = self
        let path = target.prefix { $0 != "?" }
        if reference.isEmpty {
            return self
        } else if reference.hasPrefix("/") {
            resolved.target = Self.withoutDots(reference)
        } else if reference.hasPrefix("?") {
            resolved.target = path + reference
        } else {
            let directory = path[...(path.lastIndex(of: "/") ?? path.startIndex)]
            resolved.target = Self.withoutDots(directory + reference)
        }
        return resolved
    }

    /// Returns a copy of the endpoint with another request target.
    func at(_ target: String) -> Endpoint {
        var other = self
        other.target = target
        return other
    }

    private static func originForm(_ text: some StringProtocol) -> String {
        text.isEmpty ? "/" : text.hasPrefix("/") ? String(text) : "/" + text
    }

    private static func withoutDots(_ target: String) -> String {
        let end = target.firstIndex(of: "?") ?? target.endIndex
        var segments: [Substring] = []
        let parts = target[..<end].dropFirst().split(separator: "/", omittingEmptySubsequences: false)
        for (index, part) in parts.enumerated() {
            let isLast = index == parts.count - 1
            switch part {
            case ".": if isLast { segments.append("") }
            case "..":
                _ = segments.popLast()
                if isLast { segments.append("") }
            default: segments.append(part)
            }
        }
        return "/" + segments.joined(separator: "/") + target[end...]
    }
}
