import HTTPSemantics
import Testing

@testable import TransferServer

@Suite struct InterimAllowanceTests {
    @Test(
        "INT-07: at most three offsets are reported to proxies and to clients written in Go",
        arguments: [
            ["X-Forwarded-For": "192.0.2.1"], ["Via": "1.1 a"], ["Forwarded": "for=_a"], ["X-Forwarded-Proto": "https"],
            ["User-Agent": "Go-http-client/1.1"],
        ] as [Fields])
    func few(fields: Fields) { #expect(InterimAllowance.offsets(for: fields) == 3) }

    @Test(
        "the number of offsets that are reported to other clients is not limited",
        arguments: [[:], ["User-Agent": "curl/8.14", "Host": "a"]] as [Fields])
    func many(fields: Fields) { #expect(InterimAllowance.offsets(for: fields) == nil) }
}
