/// An IPv4 or IPv6 address.
///
/// An IPv4 address and the IPv6 address that it is mapped to (`::ffff:192.0.2.1`, RFC 4291 section 2.5.5.2) are the
/// same value: a socket of both families reports an IPv4 address as a mapped one.
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

    /// Parses dotted decimal IPv4, or IPv6 without brackets; `nil` for everything else, such as an address with a zone
    /// identifier.
    public init?(parsing text: String) {
        guard let address = text.withBytes({ IPAddress(v4: $0) }) ?? IPAddress(v6: Array(text.utf8)[...]) else {
            return nil
        }
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
        // group (RFC 5952 section 4.2).
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
    /// `IPv4address` of RFC 3986 section 3.2.2: four decimal octets without leading zeros.
    init?(v4 text: some Sequence<UInt8>) {
        var bits: UInt32 = 0
        var (octets, digits, value) = (0, 0, UInt32(0))
        for byte in text {
            if byte == UInt8(ascii: ".") {
                guard digits > 0, octets < 3 else { return nil }
                bits = bits << 8 | value
                (octets, digits, value) = (octets + 1, 0, 0)
            } else {
                guard byte.isDigit, digits == 0 || value > 0 else { return nil }
                value = value * 10 + UInt32(byte - UInt8(ascii: "0"))
                digits += 1
                guard value <= 255 else { return nil }
            }
        }
        guard digits > 0, octets == 3 else { return nil }
        self.init(v4: bits << 8 | value)
    }

    /// `IPv6address` of RFC 3986 section 3.2.2: eight groups. One run of zeros may be replaced by "::", and the last
    /// two groups may be written as IPv4.
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

/// A block of IP addresses in the notation of CIDR (RFC 4632 section 3.1, RFC 4291 section 2.3).
public struct AddressBlock: Sendable, Hashable, CustomStringConvertible {
    /// The first address of the block; all bits after the prefix are zero.
    public let address: IPAddress
    /// The length of the prefix in bits, in the IPv6 form: 0…128.
    private let length: UInt64

    /// Parses `10.0.0.0/8`, `fd00::/8`, or one address. Returns `nil` if the text is malformed, or if a bit after the
    /// prefix is not zero.
    public init?(parsing text: String) {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let address = IPAddress(parsing: String(parts[0])) else { return nil }
        // ::ffff:10.0.0.0 and 10.0.0.0 are the same address. The prefix length refers to the notation in the text: 104
        // bits in the first one are 8 bits in the second one.
        let isDotted = !parts[0].contains(":")
        var length: UInt64 = 128
        if parts.count == 2 {
            guard (1...3).contains(parts[1].utf8.count), parts[1].utf8.allSatisfy(\.isDigit),
                let bits = UInt64(parts[1]), bits <= (isDotted ? 32 : 128)
            else { return nil }
            length = isDotted ? bits + 96 : bits
        }
        self.init(address, length)
        guard self.address == address else { return nil }
    }

    /// The network that usually belongs to one client: an IPv4 address, or the /64 of an IPv6 address (RFC 6177 section
    /// 2). An IPv6 address in the well-known prefix of translators (64:ff9b::/96, RFC 6052 section 2.1) contains an
    /// IPv4 address; the result is then that IPv4 address.
    public init(clientNetworkOf address: IPAddress) {
        if address.high == 0x0064_FF9B_0000_0000, let bits = UInt32(exactly: address.low) {
            self.init(IPAddress(v4: bits), 128)
        } else {
            self.init(address, address.isIPv4 ? 128 : 64)
        }
    }

    private init(_ address: IPAddress, _ length: UInt64) {
        self.length = length
        let (high, low) = Self.mask(length)
        self.address = IPAddress(high: address.high & high, low: address.low & low)
    }

    /// The addresses of the machine itself: 127.0.0.0/8 and ::1.
    public static let loopback = [
        AddressBlock(IPAddress(v4: 0x7F00_0000), 104), AddressBlock(IPAddress(high: 0, low: 1), 128),
    ]

    /// Whether an address belongs to the block.
    public func contains(_ other: IPAddress) -> Bool { AddressBlock(other, length).address == address }

    /// The block in the notation of CIDR, such as `10.0.0.0/8`.
    public var description: String { "\(address)/\(address.isIPv4 && length >= 96 ? length - 96 : length)" }

    private static func mask(_ length: UInt64) -> (high: UInt64, low: UInt64) {
        // Shifting by all bits or more gives zero.
        (length >= 64 ? .max : ~(.max >> length), length <= 64 ? 0 : ~(.max >> (length - 64)))
    }
}
