import HTTPSemantics
import TestSupport
import Testing

@testable import TransferServer

@Suite("Trusted proxies")
struct TrustedProxiesTests {
    private let proxies = TrustedProxies(["10.0.0.0/8", "2001:db8::/32"].compactMap(AddressBlock.init(parsing:)))

    private func origin(_ peer: String?, _ fields: Fields) -> RequestOrigin { proxies.origin(of: fields, peer: peer) }

    private static let claims: Fields = [
        "Forwarded": "for=198.51.100.1;host=evil.example;proto=https", "X-Forwarded-For": "198.51.100.1",
        "X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "https", "X-Forwarded-Prefix": "/evil",
    ]

    @Test(
        "Forwarding fields of an untrusted peer are ignored",
        arguments: ["203.0.113.9", "11.0.0.1", "2001:db9::1", "fe80::1%eth0", "x"])
    func stranger(peer: String) {
        #expect(origin(peer, Self.claims) == RequestOrigin(client: peer))
    }

    @Test(
        "Forwarding fields are used from trusted addresses, loopback, Unix sockets and mapped IPv6 addresses",
        arguments: ["10.1.2.3", "2001:db8::7", "127.0.0.1", "::1", "::ffff:10.1.2.3", nil])
    func trusted(peer: String?) {
        let origin = origin(peer, Self.claims)
        #expect(origin.client == "198.51.100.1")
        #expect(origin.proxy == peer ?? "unix")
        #expect(origin.scheme == "https")
        #expect(origin.host?.serialized == "evil.example")
        #expect(origin.base.description == "/evil")
    }

    @Test("Without forwarding fields the peer is the client, not a proxy")
    func silent() {
        #expect(origin("127.0.0.1", [:]) == RequestOrigin(client: "127.0.0.1"))
        #expect(origin(nil, [:]) == RequestOrigin(client: nil))
    }

    @Test(
        "The chain of addresses is read from its end, up to the first address that is not trusted",
        arguments: [
            ("1.1.1.1, 198.51.100.1", "198.51.100.1"), ("1.1.1.1, 198.51.100.1, 10.0.0.5", "198.51.100.1"),
            ("1.1.1.1, 198.51.100.1, 2001:db8::1, 127.0.0.1", "198.51.100.1"), ("10.0.0.4, 10.0.0.5", "10.0.0.4"),
            ("1.1.1.1, unknown", "unknown"), ("1.1.1.1, evil, 10.0.0.5", "10.0.0.5"),
        ])
    func chain(value: String, client: String) {
        #expect(origin("10.0.0.1", ["X-Forwarded-For": value]).client == client)
        let lines = Fields(value.split(separator: ",").map { ("X-Forwarded-For", String($0)) })
        #expect(origin("10.0.0.1", lines).client == client, "in separate lines")
        let standard = value.split(separator: ",").map { part in
            let node = part.drop { $0 == " " }
            return node.contains(":") ? "for=\"[\(node)]\"" : "for=\(node)"
        }
        #expect(origin("10.0.0.1", Fields(standard.map { ("Forwarded", $0) })).client == client, "Forwarded")
    }

    @Test("Host and scheme are read from the element of the client, not from an earlier element")
    func schemeOfTheLastHop() {
        let line = "for=1.1.1.1;host=evil.example;proto=http, for=198.51.100.1;host=files.example;proto=https"
        let origin = origin("10.0.0.1", ["Forwarded": line])
        #expect(origin.host?.serialized == "files.example" && origin.scheme == "https")
    }

    @Test("Forwarded and X-Forwarded-… that contradict each other are ignored, because the client may have sent one")
    func contradiction() {
        let fields: Fields = ["Forwarded": "for=1.1.1.1", "X-Forwarded-For": "198.51.100.1"]
        #expect(origin("10.0.0.1", fields) == RequestOrigin(client: "10.0.0.1"))
        let hosts: Fields = [
            "Forwarded": "for=1.1.1.1;host=a.example;proto=http", "X-Forwarded-Host": "b.example",
            "X-Forwarded-Proto": "https",
        ]
        #expect(origin("10.0.0.1", hosts).host == nil && origin("10.0.0.1", hosts).scheme == nil)
    }

    @Test("A malformed field is ignored, and also a field with two lines that may have only one")
    func doubtful() {
        for name in ["X-Forwarded-Prefix", "X-Forwarded-Host", "X-Forwarded-Proto"] {
            let value = ["X-Forwarded-Prefix": "/a", "X-Forwarded-Proto": "https"][name] ?? "a.example"
            #expect(origin("10.0.0.1", [name: value]) != RequestOrigin(client: "10.0.0.1"), "\(name)")
            #expect(origin("10.0.0.1", Fields([(name, value), (name, value)])) == RequestOrigin(client: "10.0.0.1"))
            #expect(origin("10.0.0.1", [name: value + ", " + value]) == RequestOrigin(client: "10.0.0.1"))
            #expect(origin("10.0.0.1", [name: " "]) == RequestOrigin(client: "10.0.0.1"))
        }
        for line in ["for=1.1.1.1;for=2.2.2.2", "for=\"1.1.1.1", "garbage", "for=evil.example"] {
            #expect(origin("10.0.0.1", ["Forwarded": line]).client == "10.0.0.1", "\(line)")
        }
    }

    @Test(
        "Fields of an untrusted peer never change the client, even if they are malformed",
        arguments: [1, 2, 3, 20_261_121] as [UInt64])
    func property(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        func address(_ first: Int) -> String {
            "\(first)." + (0..<3).map { _ in "\(Int.random(in: 0...255, using: &random))" }.joined(separator: ".")
        }
        for _ in 0..<500 {
            // The value begins with the elements that the client sent. The address of the client follows, which the
            // first trusted proxy has added, and then the addresses of trusted proxies.
            let sent = (0..<Int.random(in: 0...3, using: &random)).map { _ in
                Bool.random(using: &random)
                    ? address(10) : ["evil", "\"", "unknown", "for=1.1.1.1", ";"].randomElement(using: &random) ?? ""
            }
            let client = address(203)
            let ours = (0..<Int.random(in: 0...3, using: &random)).map { _ in address(10) }
            let value = (sent + [client] + ours).joined(separator: Bool.random(using: &random) ? "," : ", ")
            #expect(origin(address(10), ["X-Forwarded-For": value]).client == client, "seed \(seed): \(value)")
            let stranger = address(192)
            #expect(
                origin(stranger, ["X-Forwarded-For": value]) == RequestOrigin(client: stranger),
                "seed \(seed): \(value)")
        }
    }

    // MARK: Fields of forwarded requests

    @Test("The forwarding fields of an untrusted peer are replaced, except for Via", arguments: ["203.0.113.9", "x"])
    func replacedFields(peer: String) {
        var fields = Self.claims
        fields.append("Via", "1.0 other")
        fields.append("X-Real-IP", "198.51.100.1")
        fields.append("X-Forwarded-Port", "1")
        let result = proxies.forwardedFields(of: fields, peer: peer, host: "a.example:80", scheme: "http")
        #expect(
            result == [
                "Forwarded": "for=\(peer);host=\"a.example:80\";proto=http", "X-Forwarded-For": peer,
                "X-Forwarded-Proto": "http", "X-Forwarded-Host": "a.example:80", "Via": "1.0 other, 1.1 onward",
            ])
    }

    @Test("The forwarding fields of a trusted peer are continued")
    func continuedFields() {
        var fields = Self.claims
        fields.append("X-Forwarded-For", "198.51.100.2")
        let result = proxies.forwardedFields(of: fields, peer: "10.1.2.3", host: "a.example", scheme: "https")
        #expect(
            result == [
                "Forwarded":
                    "for=198.51.100.1;host=evil.example;proto=https, for=10.1.2.3;host=a.example;proto=https",
                "X-Forwarded-For": "198.51.100.1, 198.51.100.2, 10.1.2.3", "X-Forwarded-Proto": "https",
                "X-Forwarded-Host": "evil.example", "X-Forwarded-Prefix": "/evil", "Via": "1.1 onward",
            ])
    }

    @Test("An IPv6 address is in brackets and without its zone; a Unix socket has no address")
    func forwardedNodes() {
        let link = proxies.forwardedFields(of: [:], peer: "fe80::1%eth0", host: nil, scheme: "http")
        #expect(link["Forwarded"] == "for=\"[fe80::1]\";proto=http" && link["X-Forwarded-For"] == "fe80::1")
        #expect(!link.contains("X-Forwarded-Host"))
        let local = proxies.forwardedFields(of: [:], peer: nil, host: nil, scheme: "http")
        #expect(local["Forwarded"] == "for=unknown;proto=http" && local["X-Forwarded-For"] == "unknown")
    }
}
