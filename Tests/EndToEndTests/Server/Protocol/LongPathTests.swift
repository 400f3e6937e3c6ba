import ConformanceKit
import Testing

@Suite("Responses with long URLs", .blocking)
struct LongPathTests {
    @Test("a response has room for a URL of eleven thousand bytes")
    func location() throws {
        // Each name has 254 bytes, which need 762 bytes in percent-encoding.
        let name = String(repeating: "%C3%A9", count: 127)
        let path = "/files" + String(repeating: "/" + name, count: 14) + "/f"
        try withServer { server in
            for number in 0..<2 {
                let response = try server.exchange(Request("PUT", path + "\(number)", [], .bytes([1])))
                #expect(response.status == 201)
                #expect(response.value("Location") == path + "\(number)")
            }
            let redirection = try server.exchange(Request("GET", "/files/\(name)"))
            #expect(redirection.status == 308)
            #expect(redirection.value("Location") == "/files/\(name)/")
        }
    }
}
