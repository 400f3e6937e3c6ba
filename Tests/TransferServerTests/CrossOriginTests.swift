import HTTPSemantics
import ResumableUpload
import Testing

@testable import TransferServer

@Suite("Cross-origin requests")
struct CrossOriginTests {
    private let policy = CrossOrigin(origins: ["https://app.example"])

    @Test("XCO-02 VER-27: exposes every field of the protocol to a page of a named origin")
    func exposes() {
        let fields = policy.responseFields(for: ["Origin": "https://app.example"])
        #expect(fields["Access-Control-Allow-Origin"] == "https://app.example")
        #expect(fields["Vary"] == "Origin")
        let exposed = fields["Access-Control-Expose-Headers"]?.split(separator: ", ").map(String.init) ?? []
        for name in UploadFieldName.responseFields + ["Location", "ETag"] { #expect(exposed.contains(name)) }
    }

    @Test("tells other origins nothing", arguments: ["https://evil.example", "null", "http://app.example"])
    func others(origin: String) {
        let fields = policy.responseFields(for: ["Origin": origin])
        #expect(!fields.contains("Access-Control-Allow-Origin"))
        #expect(fields["Vary"] == "Origin")
        let preflight: Fields = ["Origin": origin, "Access-Control-Request-Method": "PATCH"]
        #expect(policy.preflightFields(for: preflight, methods: [.patch]).isEmpty)
    }

    @Test("XCO-01 VER-27: a preflight allows the protocol's methods and fields")
    func preflight() {
        let fields = policy.preflightFields(
            for: ["Origin": "https://app.example", "Access-Control-Request-Method": "PATCH"],
            methods: [.head, .patch, .delete])
        #expect(fields["Access-Control-Allow-Methods"] == "HEAD, PATCH, DELETE")
        let allowed = fields["Access-Control-Allow-Headers"]?.split(separator: ", ").map(String.init) ?? []
        for name in UploadFieldName.requestFields + ["Content-Type"] { #expect(allowed.contains(name)) }
    }

    @Test("no origins, no fields")
    func off() {
        #expect(CrossOrigin(origins: []).responseFields(for: ["Origin": "https://app.example"]).isEmpty)
    }
}
