import Foundation
import FoundationNetworking
import HTTPSemantics
import ResumableTransfer
import Testing

@testable import ResumableURLSession

@Suite("Challenges for Basic authentication")
struct BasicChallengeTests {
    @Test(
        "the realm of the Basic challenge is found among all challenges",
        arguments: [
            (["Basic realm=\"files\""], "files"),
            (["basic realm=files, charset=\"UTF-8\""], "files"),
            (["Basic"], ""),
            (["Bearer realm=\"other\", error=\"invalid, token\", Basic realm=\"a, b\""], "a, b"),
            (
                ["Digest realm=\"d\", nonce=\"abc==\"", "Basic charset=\"UTF-8\", realm = \"two \\\"words\\\"\""],
                "two \"words\""
            ),
            (["Negotiate YWJj==, Basic realm=\"n\""], "n"),
            (["Bearer"], nil), (["Digest realm=\"Basic\""], nil), ([], nil), ([", ,"], nil), (["=x"], nil),
        ] as [([String], String?)])
    func realm(values: [String], realm: String?) throws {
        let url = try #require(URL(string: "https://example.com/a"))
        let fields = Fields(values.map { ("WWW-Authenticate", $0) })
        let space = URLProtectionSpace(TransferResponse(status: 401, fields: fields), from: url, proxy: nil)
        #expect(space?.realm == realm && (space == nil || space?.port == 443))
    }
}
