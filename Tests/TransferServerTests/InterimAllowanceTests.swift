import HTTPSemantics
import Testing

@testable import TransferServer

@Suite struct InterimAllowanceTests {
    @Test(
        "INT-07: requests from proxies and clients written in Go get at most three reported offsets",
        arguments: [
            ["X-Forwarded-For": "192.0.2.1"], ["Via": "1.1 a"], ["Forwarded": "for=_a"], ["X-Forwarded-Proto": "https"],
            ["User-Agent": "Go-http-client/1.1"],
        ] as [Fields])
    func few(fields: Fields) { #expect(InterimAllowance.offsets(for: fields) == 3) }

    @Test(
        "other requests have no maximum of reported offsets",
        arguments: [[:], ["User-Agent": "curl/8.14", "Host": "a"]] as [Fields])
    func many(fields: Fields) { #expect(InterimAllowance.offsets(for: fields) == nil) }
}
