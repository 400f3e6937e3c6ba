import TestSupport
import Testing

@testable import HTTPSemantics

@Suite("IP addresses and address blocks")
struct IPAddressTests {
    @Test(
        "Addresses are written in the canonical form of RFC 5952",
        arguments: [
            ("192.0.2.1", "192.0.2.1"), ("0.0.0.0", "0.0.0.0"), ("::", "::"), ("::1", "::1"), ("1::", "1::"),
            ("2001:DB8:0:0:1:0:0:1", "2001:db8::1:0:0:1"), ("2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"),
            ("2001:0:0:1:0:0:0:1", "2001:0:0:1::1"), ("::ffff:192.0.2.1", "192.0.2.1"),
            ("::ffff:c000:201", "192.0.2.1"),
            ("64:ff9b::192.0.2.33", "64:ff9b::c000:221"), ("1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"),
            ("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
        ])
    func canonical(text: String, expected: String) {
        #expect(IPAddress(parsing: text)?.description == expected)
    }

    @Test(
        "Malformed addresses are refused",
        arguments: [
            "", "1", "1.2.3", "1.2.3.4.5", "1.2.3.256", "01.2.3.4", "1.2.3.4 ", "1.2.3.+4", "0x1.2.3.4", ":", ":::",
            "1::2::3", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1:2:3:4:5:6:7:8::", "12345::", "g::", "[::1]",
            "fe80::1%eth0",
            "::1.2.3", "1.2.3.4::", ":1::", "1::2:", "１.2.3.4",
        ])
    func refused(text: String) {
        #expect(IPAddress(parsing: text) == nil)
    }

    @Test("Addresses are written and read back unchanged", arguments: SeededGenerator.seeds)
    func roundTrip(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<500 {
            // Many groups are zero, because the short form omits such groups.
            func half() -> UInt64 {
                (0..<4).reduce(0) { value, _ in
                    value << 16 | (Bool.random(using: &random) ? 0 : UInt64.random(in: 0...0xFFFF, using: &random))
                }
            }
            let address = IPAddress(high: half(), low: half())
            #expect(IPAddress(parsing: address.description) == address, "seed \(seed)")
            let old = IPAddress(v4: UInt32.random(in: 0...UInt32.max, using: &random))
            #expect(old.isIPv4 && IPAddress(parsing: old.description) == old, "seed \(seed)")
            // The changed text is refused, or its value round-trips.
            let changed = random.mutate(address.description)
            if let read = IPAddress(parsing: changed) {
                #expect(IPAddress(parsing: read.description) == read, "seed \(seed): \(changed)")
            }
        }
    }

    @Test(
        "A block contains the addresses with its prefix, in IPv4 and IPv6",
        arguments: [
            ("10.0.0.0/8", "10.255.0.1", true), ("10.0.0.0/8", "11.0.0.0", false), ("192.0.2.1", "192.0.2.1", true),
            ("192.0.2.1", "192.0.2.2", false), ("192.0.2.1/32", "192.0.2.1", true), ("0.0.0.0/0", "8.8.8.8", true),
            ("0.0.0.0/0", "2001:db8::1", false), ("::/0", "2001:db8::1", true), ("fd00::/8", "fdff::1", true),
            ("fd00::/8", "fc00::1", false), ("2001:db8::/64", "2001:db8::ffff:0:0:1", true),
            ("2001:db8::/65", "2001:db8::8000:0:0:1", false), ("::1/128", "::1", true), ("::1/128", "::", false),
            ("10.0.0.0/8", "::ffff:10.1.2.3", true), ("::ffff:10.0.0.0/104", "10.1.2.3", true),
        ])
    func containment(block: String, address: String, isInside: Bool) throws {
        let block = try #require(AddressBlock(parsing: block))
        #expect(block.contains(try #require(IPAddress(parsing: address))) == isInside)
    }

    @Test(
        "A block with an invalid prefix, or with bits set after the prefix, is refused",
        arguments: [
            "", "/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/+8", "10.0.0.0/8/8", "::/129", "10.0.0.1/8",
            "fd00::1/8", "host/8", "10.0.0.0/0008", "[::1]/128",
        ])
    func noBlock(text: String) {
        #expect(AddressBlock(parsing: text) == nil)
    }

    @Test("A block contains exactly the addresses with its prefix", arguments: SeededGenerator.seeds)
    func prefixes(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<300 {
            let length = Int.random(in: 0...32, using: &random)
            let bits = UInt32.random(in: 0...UInt32.max, using: &random)
            let mask: UInt32 = length == 0 ? 0 : ~0 << UInt32(32 - length)
            let text = "\(IPAddress(v4: bits & mask))/\(length)"
            let block = try #require(AddressBlock(parsing: text))
            #expect(block.description == text)
            #expect(block.contains(IPAddress(v4: bits)), "seed \(seed): \(text)")
            guard length > 0 else { continue }
            let flipped = bits ^ (1 << UInt32(32 - Int.random(in: 1...length, using: &random)))
            #expect(!block.contains(IPAddress(v4: flipped)), "seed \(seed): \(text)")
        }
    }
}
