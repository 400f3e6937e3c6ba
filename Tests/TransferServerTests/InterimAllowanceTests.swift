import HTTPSemantics
import Testing

@testable import TransferServer

@Suite struct InterimAllowanceTests {
    @Test(
        "INT-07: proxies and clients made with Go end a request with its sixth interim response",
        arguments: [
            ["X-Forwarded-For": "192.0.2.1"], ["Via": "1.1 a"], ["Forwarded": "for=_a"], ["X-Forwarded-Proto": "https"],
            ["User-Agent": "Go-http-client/1.1"],
        ] as [Fields])
    func few(fields: Fields) { #expect(InterimAllowance.offsets(for: fields) == 3) }

    @Test("others get what they are worth", arguments: [[:], ["User-Agent": "curl/8.14", "Host": "a"]] as [Fields])
    func many(fields: Fields) { #expect(InterimAllowance.offsets(for: fields) == nil) }
}
