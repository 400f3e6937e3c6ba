/// `uri-host [ ":" port ]`: the value of Host and the authority of an absolute-form target, without user information
/// (RFC 9110 §4.2, §7.2; RFC 3986 §3.2).
package struct Authority: Sendable, Hashable {
    /// A registered name, an IPv4 address or an IP literal with its brackets; ASCII letters in lower case, never empty.
    package let host: String
    /// The port, 0…65535; nil when it is absent or empty, which means the default port of the scheme.
    package let port: Int?

    /// Parses an authority. Returns nil for user information (RFC 9110 §4.2.4) and for an empty host, which "http" and
    /// "https" URIs must not have (§4.2.1).
    package init?(parsing text: String) {
        var scanner = FieldValueScanner(text)
        let name: ArraySlice<UInt8>
        if scanner.next == UInt8(ascii: "[") {
            name = scanner.run { $0 != UInt8(ascii: "]") }
            guard scanner.consume("]"), Authority.isLiteralAddress(name.dropFirst()) else { return nil }
        } else {
            name = scanner.run { $0 != UInt8(ascii: ":") }
            guard Authority.isRegisteredName(name) else { return nil }
        }
        var host = String(decoding: name, as: UTF8.self).asciiLowercased
        if name.first == UInt8(ascii: "[") { host += "]" }
        self.host = host

        if scanner.isAtEnd {
            port = nil
            return
        }
        guard scanner.consume(":") else { return nil }
        if scanner.isAtEnd {
            port = nil
            return
        }
        guard let digits = scanner.digits(), scanner.isAtEnd, digits.count <= 5 else { return nil }
        let number = digits.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
        guard number <= 65535 else { return nil }
        port = number
    }

    /// The canonical text: host, and `:port` when there is one.
    package var serialized: String { port.map { "\(host):\($0)" } ?? host }

    /// Returns whether `name` is a non-empty `reg-name` of RFC 3986 §3.2.2. An IPv4 address is a `reg-name`, too.
    private static func isRegisteredName(_ name: ArraySlice<UInt8>) -> Bool {
        guard !name.isEmpty else { return false }
        var index = name.startIndex
        while index < name.endIndex {
            if name[index] == UInt8(ascii: "%") {
                guard index + 2 < name.endIndex, name[index + 1].hexDigitValue != nil,
                    name[index + 2].hexDigitValue != nil
                else { return false }
                index += 3
            } else {
                guard name[index].isUnreserved || name[index].isSubDelimiter else { return false }
                index += 1
            }
        }
        return true
    }

    /// Returns whether `address` is an `IPv6address` or `IPvFuture` of RFC 3986 §3.2.2 without a zone identifier.
    private static func isLiteralAddress(_ address: ArraySlice<UInt8>) -> Bool {
        if address.first == UInt8(ascii: "v") || address.first == UInt8(ascii: "V") {
            let parts = address.dropFirst().split(
                separator: UInt8(ascii: "."), maxSplits: 1, omittingEmptySubsequences: false)
            return parts.count == 2 && !parts[0].isEmpty && parts[0].allSatisfy { $0.hexDigitValue != nil }
                && !parts[1].isEmpty
                && parts[1].allSatisfy { $0.isUnreserved || $0.isSubDelimiter || $0 == UInt8(ascii: ":") }
        }
        return IPAddress(v6: address) != nil
    }
}
