import HTTPSemantics
import Testing

@testable import TransferServer

@Suite("Clients of connections")
struct ConnectionClientTests {
    private let proxies = TrustedProxies(["10.0.0.0/8"].compactMap(AddressBlock.init(parsing:)))

    private func name(_ address: String?) -> String { "\(ConnectionClient(address, isExempt: false))" }

    @Test("Clients are distinguished by IPv4 address, by /64 of IPv6, and by the name that a proxy reports")
    func names() {
        #expect(name("192.0.2.7") == "192.0.2.7")
        #expect(name("::ffff:192.0.2.7") == "192.0.2.7")
        #expect(name("64:ff9b::192.0.2.7") == "192.0.2.7")
        #expect(name("64:ff9b:1::192.0.2.7") == "64:ff9b:1::/64")
        #expect(name("2001:db8:1:2:3:4:5:6") == "2001:db8:1:2::/64")
        #expect(name("fe80::1%eth0") == "fe80::/64")
        #expect(name("_hidden") == "_hidden")
        #expect(name("unknown") == "unknown")
        #expect(name(nil) == "a Unix socket")
        func same(_ one: String?, _ other: String?) -> Bool {
            ConnectionClient(one, isExempt: false) == ConnectionClient(other, isExempt: false)
        }
        #expect(same("2001:db8::1", "2001:db8::ffff:1") && !same("2001:db8::1", "2001:db8:0:1::1"))
        #expect(same("::ffff:192.0.2.7", "192.0.2.7") && !same("192.0.2.7", "192.0.2.8"))
        #expect(!same("unknown", nil))
        #expect(ConnectionClient("10.0.0.1", isExempt: true) != ConnectionClient("10.0.0.1", isExempt: false))
    }

    @Test("Trusted peers are exempt until they forward a request")
    func exemption() {
        for peer in ["10.1.2.3", "127.0.0.1", "::1", nil] { #expect(proxies.client(ofPeer: peer).isExempt) }
        for peer in ["192.0.2.1", "2001:db8::1"] { #expect(!proxies.client(ofPeer: peer).isExempt) }
        func client(_ fields: Fields) -> ConnectionClient? {
            proxies.client(of: fields, origin: proxies.origin(of: fields, peer: "10.1.2.3"))
        }
        #expect(client(["Host": "a", "Accept": "*/*"]) == nil)
        let reported = ConnectionClient("198.51.100.1", isExempt: false)
        #expect(client(["X-Forwarded-For": "198.51.100.1"]) == reported)
        #expect(client(["Forwarded": "for=198.51.100.1"]) == reported)
        // Fields that contradict each other do not make a client exempt.
        let contradiction: Fields = ["Forwarded": "for=198.51.100.1", "X-Forwarded-For": "198.51.100.2"]
        #expect(client(contradiction) == ConnectionClient("10.1.2.3", isExempt: false))
        #expect(client(["Via": "1.1 proxy"]) == ConnectionClient("10.1.2.3", isExempt: false))
    }
}
