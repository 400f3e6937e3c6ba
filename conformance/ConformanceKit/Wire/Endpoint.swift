import HTTPSemantics
import SystemCalls

/// Where a URL leads: a socket, what Host says there, and the target of the request line.
package struct Endpoint: Sendable, Hashable {
    var address: SocketAddress
    var authority: String
    /// Path and query in origin form.
    package var target: String

    /// Reads `http://host[:port]/path` and `unix:/socket:/path`. A fragment is dropped.
    package init?(_ url: String) {
        let text = url.prefix { $0 != "#" }
        if text.hasPrefix("unix:") {
            let rest = text.dropFirst(5)
            guard let colon = rest.firstIndex(of: ":"), colon > rest.startIndex else { return nil }
            address = .unix(path: String(rest[..<colon]))
            authority = "localhost"
            target = Self.originForm(rest[rest.index(after: colon)...])
            return
        }
        guard text.lowercased().hasPrefix("http://") else { return nil }
        let rest = text.dropFirst(7)
        let end = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
        guard let parsed = Authority(parsing: String(rest[..<end])) else { return nil }
        guard let port = UInt16(exactly: parsed.port ?? 80), port > 0 else { return nil }
        let host = parsed.host
        address = .tcp(host: host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host, port: port)
        authority = String(rest[..<end])
        target = Self.originForm(rest[end...])
    }

    /// The URL again.
    package var url: String {
        if case .unix(let path) = address { return "unix:\(path):\(target)" }
        return "http://\(authority)\(target)"
    }

    /// Resolves a reference such as the value of Location against this request's URL (RFC 3986 section 5.2).
    ///
    /// Nil for a scheme that is not spoken here.
    func resolving(_ reference: String) -> Endpoint? {
        let reference = String(reference.prefix { $0 != "#" })
        if reference.lowercased().hasPrefix("http://") {
            if case .unix = address, var same = Endpoint(reference) {
                same.address = address
                return same
            }
            return Endpoint(reference)
        }
        if let colon = reference.firstIndex(of: ":"), !reference[..<colon].contains("/"),
            reference[..<colon].allSatisfy({ $0.isLetter || $0.isNumber || "+-.".contains($0) })
        {
            return nil
        }
        if reference.hasPrefix("//") { return resolving("http:" + reference) }
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

    /// The same place with another target.
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
