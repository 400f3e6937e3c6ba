import TestSupport
import Testing

@testable import HTTPSemantics

@Suite("Forwarded (RFC 7239)")
struct ForwardedTests {
    private func address(_ text: String) -> ForwardedNode? { IPAddress(parsing: text).map { .address($0) } }

    @Test("The examples of RFC 7239 sections 4 and 7.4 are read")
    func examples() throws {
        let gazonk = try #require(ForwardedElement.elements(parsing: "for=\"_gazonk\""))
        #expect(gazonk == [ForwardedElement(client: .obfuscated("_gazonk"))])
        let six = try #require(ForwardedElement.elements(parsing: "For=\"[2001:db8:cafe::17]:4711\""))
        #expect(six == [ForwardedElement(client: address("2001:db8:cafe::17"))])
        let all = try #require(ForwardedElement.elements(parsing: "for=192.0.2.60;proto=http;by=203.0.113.43"))
        #expect(all == [ForwardedElement(client: address("192.0.2.60"), scheme: "http")])
        let two = try #require(ForwardedElement.elements(parsing: "for=192.0.2.43, for=198.51.100.17"))
        #expect(two.map(\.client) == [address("192.0.2.43"), address("198.51.100.17")])
        let others = try #require(
            ForwardedElement.elements(
                parsing: "for=_hidden, for=_SEVKISEK;by=203.0.113.60;proto=HTTPS;host=\"Example.com:80\""))
        #expect(others[0].client == .obfuscated("_hidden"))
        #expect(others[1].scheme == "https" && others[1].host?.serialized == "example.com:80")
    }

    @Test("Quotes, any order, unknown and empty pairs, empty elements and white space are accepted")
    func generous() throws {
        let line = "  ;for=\"1.2.3.4\" ; secret=\"a,b;c=\\\"d\" ;, ,proto=http;;for=unknown  "
        let elements = try #require(ForwardedElement.elements(parsing: line))
        #expect(
            elements == [
                ForwardedElement(client: address("1.2.3.4")), ForwardedElement(client: .unknown, scheme: "http"),
            ])
        #expect(ForwardedElement.elements(parsing: "") == [])
    }

    @Test(
        "Ambiguous values are refused",
        arguments: [
            "for", "for=", "=1.2.3.4", "for =1.2.3.4", "for= 1.2.3.4", "for=1.2.3.4;for=5.6.7.8",
            "for=1.2.3.4;FOR=1.2.3.4",
            "for=\"1.2.3.4", "for=1.2.3.4\"", "for=[::1]", "for=\"::1\"", "for=\"[::1\"", "for=\"[::1]x\"", "for=1.2.3",
            "for=\"1.2.3.4:\"", "for=\"1.2.3.4:123456\"", "for=\"1.2.3.4:x\"", "for=\"1.2.3.4:_\"", "for=_", "for=_a/b",
            "for=name", "for=\"\"", "proto=ftp", "host=\"a b\"", "host=\"\"", "by=here", "for=1.2.3.4 for=5.6.7.8",
            "for=1.2.3.4, for=x", "for=\"1.2.3.4\u{0}\"",
        ])
    func malformed(line: String) {
        #expect(ForwardedElement.elements(parsing: line) == nil)
    }

    @Test(
        "The ports of nodes are ignored",
        arguments: [
            ("192.0.2.1:80", "192.0.2.1"), ("192.0.2.1:_port", "192.0.2.1"), ("[2001:DB8::1]:4711", "2001:db8::1"),
            ("[::ffff:192.0.2.1]", "192.0.2.1"), ("_a.B-c_1", "_a.B-c_1"), ("_a:_b", "_a"), ("UNKNOWN", "unknown"),
        ])
    func nodes(text: String, expected: String) {
        #expect(ForwardedNode(parsing: text)?.description == expected)
    }

    @Test("X-Forwarded-For may have IPv6 without brackets, empty elements and invalid ones")
    func unstandardized() {
        let nodes = ForwardedNode.nodes(
            parsingUnstandardized: "2001:db8::1, [2001:db8::2]:1,, evil<script> ,1.2.3.4 5.6.7.8,unknown\t, 1.2.3.4:5")
        #expect(
            nodes == [
                address("2001:db8::1"), address("2001:db8::2"), nil, nil, .unknown, address("1.2.3.4"),
            ])
        #expect(ForwardedNode.nodes(parsingUnstandardized: "") == [])
    }

    @Test("Written values are read back, and garbage is never read as an address", arguments: SeededGenerator.seeds)
    func generated(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<400 {
            let count = Int.random(in: 1...4, using: &random)
            var expected: [ForwardedNode] = []
            let line = (0..<count).map { _ -> String in
                let node: String
                switch Int.random(in: 0..<4, using: &random) {
                case 0:
                    let address = IPAddress(v4: UInt32.random(in: 0...UInt32.max, using: &random))
                    expected.append(.address(address))
                    node =
                        Bool.random(using: &random)
                        ? "\(address)" : "\"\(address):\(Int.random(in: 0...65535, using: &random))\""
                case 1:
                    let address = IPAddress(
                        high: UInt64.random(in: 1...UInt64.max, using: &random),
                        low: UInt64.random(in: 0...UInt64.max, using: &random))
                    expected.append(.address(address))
                    node = "\"[\(address)]\""
                case 2:
                    let name = "_a" + random.string(from: Array("abcXYZ019._-"), upTo: 8)
                    expected.append(.obfuscated(name))
                    // Every character may be escaped in a quoted string.
                    node = Bool.random(using: &random) ? name : "\"" + name.map { "\\\($0)" }.joined() + "\""
                default:
                    expected.append(.unknown)
                    node = "unknown"
                }
                var pairs = ["fOr=\(node)", "proto=https", "x=\"\(random.string(from: Array("a,;= "), upTo: 5))\""]
                pairs.shuffle(using: &random)
                return pairs.joined(separator: ";")
            }.joined(separator: Bool.random(using: &random) ? "," : " , ")
            let read = try #require(ForwardedElement.elements(parsing: line), "seed \(seed): \(line)")
            #expect(read.map(\.client) == expected, "seed \(seed): \(line)")
            // A value that was parsed from garbage can be serialized and parsed again to the same value.
            for element in ForwardedElement.elements(parsing: random.mutate(line)) ?? [] {
                guard let text = element.client?.description else { continue }
                #expect(text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != 0x22 }, "seed \(seed): \(text)")
            }
            _ = ForwardedNode.nodes(parsingUnstandardized: random.unicode(upTo: 40))
        }
    }
}
