/// An IPv4 or IPv6 address.
///
/// An IPv4 address and the IPv6 address that it is mapped to (`::ffff:192.0.2.1`, RFC 4291 §2.5.5.2) are the same
/// value: a socket of both families reports an IPv4 address as a mapped one.
public struct IPAddress: Sendable, Hashable, CustomStringConvertible {
    /// The upper half of the IPv6 form.
    let high: UInt64
    /// The lower half of the IPv6 form.
    let low: UInt64

    init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    init(v4 bits: UInt32) { self.init(high: 0, low: 0xFFFF_0000_0000 | UInt64(bits)) }

    /// Parses dotted decimal IPv4, or IPv6 without brackets; nil for everything else, zone identifiers included.
    public init?(parsing text: String) {
        let bytes = Array(text.utf8)[...]
        guard let address = IPAddress(v4: bytes) ?? IPAddress(v6: bytes) else { return nil }
        self = address
    }

    /// Whether this is an IPv4 address, which includes IPv4-mapped IPv6 addresses.
    public var isIPv4: Bool { high == 0 && low >> 32 == 0xFFFF }

    /// The canonical text: dotted decimal for IPv4, the form of RFC 5952 for IPv6, without brackets.
    public var description: String {
        guard !isIPv4 else {
            return [24, 16, 8, 0].map { (shift: UInt64) in String(low >> shift & 0xFF) }.joined(separator: ".")
        }
        let shifts: [UInt64] = [48, 32, 16, 0]
        let groups = [high, low].flatMap { half in shifts.map { half >> $0 & 0xFFFF } }
        // "::" replaces the longest run of zeros, the first one if several are equally long, unless it is only one
        // group (RFC 5952 §4.2).
        var gap = 0..<0
        var start = 0
        while start < 8 {
            let end = groups[start...].firstIndex { $0 != 0 } ?? 8
            if end - start > max(gap.count, 1) { gap = start..<end }
            start = end + 1
        }
        func text(_ range: Range<Int>) -> String {
            groups[range].map { String($0, radix: 16) }.joined(separator: ":")
        }
        return gap.isEmpty ? text(0..<8) : text(0..<gap.lowerBound) + "::" + text(gap.upperBound..<8)
    }
}

extension IPAddress {
    /// `IPv4address` of RFC 3986 §3.2.2: four decimal octets without leading zeros.
    init?(v4 text: ArraySlice<UInt8>) {
        let octets = text.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard octets.count == 4 else { return nil }
        var bits: UInt32 = 0
        for octet in octets {
            guard (1...3).contains(octet.count), octet.allSatisfy(\.isDigit),
                octet.count == 1 || octet.first != UInt8(ascii: "0")
            else { return nil }
            let value = octet.reduce(0) { $0 * 10 + UInt32($1 - UInt8(ascii: "0")) }
            guard value <= 255 else { return nil }
            bits = bits << 8 | value
        }
        self.init(v4: bits)
    }

    /// `IPv6address` of RFC 3986 §3.2.2: eight groups. One run of zeros may be replaced by "::", and the last two
    /// groups may be written as IPv4.
    init?(v6 text: ArraySlice<UInt8>) {
        var pieces = text.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        guard pieces.count >= 3 else { return nil }
        // "::" at the start or the end yields two empty pieces there. One is removed, and the other one is the gap.
        if pieces[0].isEmpty {
            guard pieces[1].isEmpty else { return nil }
            pieces.removeFirst()
        }
        if pieces[pieces.count - 1].isEmpty {
            guard pieces.count == 1 || pieces[pieces.count - 2].isEmpty else { return nil }
            if pieces.count > 1 { pieces.removeLast() }
        }
        var groups: [UInt64] = []
        var gap: Int?
        for (index, piece) in pieces.enumerated() {
            if piece.isEmpty {
                guard gap == nil else { return nil }
                gap = groups.count
            } else if index == pieces.count - 1 && piece.contains(UInt8(ascii: ".")) {
                guard let embedded = IPAddress(v4: piece) else { return nil }
                groups += [embedded.low >> 16 & 0xFFFF, embedded.low & 0xFFFF]
            } else {
                guard piece.count <= 4 else { return nil }
                var group: UInt64 = 0
                for digit in piece {
                    guard let value = digit.hexDigitValue else { return nil }
                    group = group << 4 | UInt64(value)
                }
                groups.append(group)
            }
        }
        if let gap {
            guard groups.count <= 7 else { return nil }
            groups.insert(contentsOf: [UInt64](repeating: 0, count: 8 - groups.count), at: gap)
        }
        guard groups.count == 8 else { return nil }
        self.init(
            high: groups[..<4].reduce(0) { $0 << 16 | $1 }, low: groups[4...].reduce(0) { $0 << 16 | $1 })
    }
}
