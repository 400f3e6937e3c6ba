/// The report of one proxy about a request that it forwards: `forwarded-element` of RFC 7239 section 4.
package struct ForwardedElement: Sendable, Hashable {
    /// The node that sent the request to the proxy (`for`); `nil` if the proxy does not report it.
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

    /// Parses one line of `Forwarded`. The last element is that of the proxy nearest to the server. White space around
    /// ";" is skipped. Returns `nil` if the line is malformed, if an element has a parameter twice, or if the value of
    /// a parameter is invalid.
    package static func elements(parsing line: String) -> [ForwardedElement]? {
        var scanner = FieldValueScanner(line)
        return scanner.list { scanner in
            var pairs: [(name: String, value: String)] = []
            if scanner.next != UInt8(ascii: ";") {
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

/// The node from which a proxy received a request: `node` of RFC 7239 section 6.
package enum ForwardedNode: Sendable, Hashable, CustomStringConvertible {
    /// An address. A port is dropped.
    case address(IPAddress)
    /// A name that the proxy generated, which begins with "_" (RFC 7239 section 6.3).
    case obfuscated(String)
    /// `unknown`: the proxy does not report the node (RFC 7239 section 6.2).
    case unknown

    /// Parses the value of `for` or `by`, without its quotes.
    package init?(parsing text: String) { self.init(text, allowsBareIPv6: false) }

    /// Parses `X-Forwarded-For`. The last element is that of the proxy nearest to the server. A malformed element
    /// becomes `nil`, and an empty element is skipped. IPv6 addresses need no brackets.
    package static func nodes(parsingUnstandardized value: String) -> [ForwardedNode?] {
        value.split(separator: ",").map { String($0).trimmingOptionalWhitespace }.filter { !$0.isEmpty }
            .map { ForwardedNode($0, allowsBareIPv6: true) }
    }

    private init?(_ text: String, allowsBareIPv6: Bool) {
        if allowsBareIPv6, let address = IPAddress(v6: Array(text.utf8)[...]) {
            self = .address(address)
            return
        }
        var scanner = FieldValueScanner(text)
        if scanner.consume("[") {
            guard let address = IPAddress(v6: scanner.run { $0 != UInt8(ascii: "]") }), scanner.consume("]") else {
                return nil
            }
            self = .address(address)
        } else {
            let name = scanner.run { $0 != UInt8(ascii: ":") }
            if name.first == UInt8(ascii: "_") {
                guard Self.isObfuscated(name) else { return nil }
                self = .obfuscated(String(decoding: name, as: UTF8.self))
            } else if let address = IPAddress(v4: name) {
                self = .address(address)
            } else {
                guard String(decoding: name, as: UTF8.self).equalsIgnoringASCIICase("unknown") else { return nil }
                self = .unknown
            }
        }
        guard !scanner.isAtEnd else { return }
        guard scanner.consume(":") else { return nil }
        let port = scanner.run { _ in true }
        let isNumber = (1...5).contains(port.count) && port.allSatisfy(\.isDigit)
        guard isNumber || Self.isObfuscated(port) else { return nil }
    }

    /// `obfnode` and `obfport`: "_" and at least one of letters, digits, ".", "_" and "-".
    private static func isObfuscated(_ name: ArraySlice<UInt8>) -> Bool {
        name.count > 1 && name.first == UInt8(ascii: "_")
            && name.allSatisfy { $0.isLetter || $0.isDigit || "._-".utf8.contains($0) }
    }

    /// The text of the node, without brackets and port.
    package var description: String {
        switch self {
        case .address(let address): address.description
        case .obfuscated(let name): name
        case .unknown: "unknown"
        }
    }
}
