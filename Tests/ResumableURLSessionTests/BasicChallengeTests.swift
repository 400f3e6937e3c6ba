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

    @Test("of several realms of one server, the credential that was chosen last is sent and confirmed")
    func severalRealms() throws {
        let url = try #require(URL(string: "http://example.com/a"))
        let proxy = URLProtectionSpace(
            proxyHost: "example.com", port: 80, type: NSURLProtectionSpaceHTTPProxy, realm: "proxy",
            authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
        // The order of the realms in a dictionary is random.
        for number in 0..<20 {
            let spaces = ["a", "b"].map {
                URLProtectionSpace(
                    host: "example.com", port: 80, protocol: "http", realm: "\($0)\(number)",
                    authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
            }
            let storage = try #require(URLSessionConfiguration.ephemeral.urlCredentialStorage)
            let credentials = TaskCredentials(storage)
            for (user, space) in [("p", proxy), ("a", spaces[0]), ("b", spaces[1])] {
                let credential = URLCredential(user: user, password: "x", persistence: .forSession)
                #expect(credentials.use(credential, for: space))
            }
            var request = TransferRequest(url.absoluteString)
            credentials.authorize(&request, to: url)
            #expect(request.fields["Authorization"] == BasicCredentials.authorization("b:x"))
            #expect(request.fields["Proxy-Authorization"] == BasicCredentials.authorization("p:x"))
            credentials.received(TransferResponse(status: 200, fields: [:]), to: url)
            #expect(Set(storage.allCredentials.values.flatMap(\.keys)) == ["b", "p"])
            // A new challenge of the first realm is not a failure of a credential for it.
            #expect(credentials.proposal(for: spaces[0]).failures == 0)
        }
    }
}
