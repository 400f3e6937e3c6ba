/// A block of IP addresses in the notation of CIDR (RFC 4632 §3.1, RFC 4291 §2.3).
public struct AddressBlock: Sendable, Hashable, CustomStringConvertible {
    /// The first address of the block; all bits after the prefix are zero.
    public let address: IPAddress
    /// The length of the prefix in bits, in the IPv6 form: 0…128.
    private let length: UInt64

    /// Parses `10.0.0.0/8`, `fd00::/8`, or one address. Returns nil if the text is malformed, or if a bit after the
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

    /// The network that usually belongs to one client: an IPv4 address, or the /64 of an IPv6 address (RFC 6177 §2). An
    /// IPv6 address in the well-known prefix of translators (64:ff9b::/96, RFC 6052 §2.1) contains an IPv4 address; the
    /// result is then that IPv4 address.
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
