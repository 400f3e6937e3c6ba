import HTTPSemantics
import HTTPTransport
import Testing

@testable import ResumableTransfer

@Suite struct FieldsSecrecyTests {
    @Test(
        "fields that may contain credentials are recognized by their names",
        arguments: [
            "Authorization", "proxy-authorization", "COOKIE", "Set-Cookie", "X-Auth-Token", "X-Api-Key", "DPoP",
            "X-Amz-Security-Token", "X-CSRF-Token", "Ocp-Apim-Subscription-Key", "X-Session-Id", "apikey",
        ])
    func secrets(name: String) {
        #expect(Fields.isSecret(name))
    }

    @Test(
        "ordinary fields are not hidden",
        arguments: ["Content-Type", "Upload-Offset", "Accept", "User-Agent", "ETag", "X-Author", "X-Tenant"])
    func ordinary(name: String) {
        #expect(!Fields.isSecret(name))
    }

    @Test("only fields that are known not to be secret are sent to another origin")
    func allowed() {
        let fields: Fields = [
            "Accept": "*/*", "accept-language": "de", "User-Agent": "x", "Content-Type": "text/plain",
            "If-None-Match": "*", "Upload-Offset": "7", "Repr-Digest": "x", "Prefer": "respond-async",
            "Range": "bytes=1-", "X-Tenant": "7", "X-Badge": "7", "Authorization": "x", "Content-Secret": "x",
            "Referer": "http://h/?key=1", "Acceptor": "7",
        ]
        #expect(
            fields.withoutSecrets.map(\.name) == [
                "Accept", "accept-language", "User-Agent", "Content-Type", "If-None-Match", "Upload-Offset",
                "Repr-Digest", "Prefer", "Range",
            ])
    }

    @Test("fields that describe the representation are sent with the creation only")
    func partition() {
        let fields: Fields = [
            "Content-Type": "text/plain", "Content-Disposition": "inline", "If-None-Match": "*", "X-Tenant": "7",
            "Repr-Digest": "x", "Content-Length": "5", "Upload-Offset": "7", "Transfer-Encoding": "chunked",
        ]
        #expect(fields.fieldsOfEveryRequest.map(\.name) == ["X-Tenant"])
        #expect(fields.creationFields.count == 4)
    }

    @Test("later fields replace all lines of earlier fields with the same name")
    func merging() {
        let merged = (["A": "1", "B": "2"] as Fields).merging(["a": "3", "C": "4", "A": "5"])
        #expect(merged.values("A") == ["3", "5"])
        #expect(merged["B"] == "2" && merged["C"] == "4")
    }

    @Test("CLI-31: the description of a URI hides the query and the path of an upload resource")
    func shown() throws {
        let uri = try #require(RequestURI("http://host.example:81/u/secret?key=private"))
        #expect(uri.description(hidingPath: false) == "http://host.example:81/u/secret?(hidden)")
        #expect(uri.description(hidingPath: true) == "http://host.example:81/(hidden)")
    }
}
