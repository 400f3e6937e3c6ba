/// What one proxy reports about the request that it forwards: `forwarded-element` of RFC 7239 §4.
package struct ForwardedElement: Sendable, Hashable {
    /// The node that sent the request to the proxy (`for`); nil if the proxy does not report it.
    package let client: ForwardedNode?
    /// The `Host` field that the proxy received (`host`).
    package let host: Authority?
    /// The scheme of the request to the proxy (`proto`), in lower case: `http` or `https`.
    package let scheme: String?

    package init(client: ForwardedNode? = nil, host: Authority? = nil, scheme: String? = nil) {
        self.client = client
        self.host = host
        self.scheme = scheme
    }

    /// Parses one line of `Forwarded`; the element of the proxy nearest to the server is the last one. Nil if the line
    /// is malformed, which includes a parameter that occurs twice and an invalid value of a parameter. White space
    /// around ";" is skipped.
    package static func elements(parsing line: String) -> [ForwardedElement]? {
        var scanner = FieldValueScanner(line)
        return scanner.list { scanner in
            var pairs: [(name: String, value: String)] = []
            if scanner.next != 0x3B {
                guard let first = scanner.parameter() else { return nil }
                pairs.append(first)
            }
            guard let more = scanner.parameters() else { return nil }
            return ForwardedElement(pairs + more)
        }
    }

    private init?(_ pairs: [(name: String, value: String)]) {
        guard Set(pairs.map(\.name)).count == pairs.count else { return nil }
        var client: ForwardedNode?
        var host: Authority?
        var scheme: String?
        for (name, value) in pairs {
            switch name {
            case "for":
                client = ForwardedNode(parsing: value)
                guard client != nil else { return nil }
            case "by":
                guard ForwardedNode(parsing: value) != nil else { return nil }
            case "host":
                host = Authority(parsing: value)
                guard host != nil else { return nil }
            case "proto":
                scheme = value.asciiLowercased
                guard scheme == "http" || scheme == "https" else { return nil }
            default: break
            }
        }
        self.init(client: client, host: host, scheme: scheme)
    }
}
