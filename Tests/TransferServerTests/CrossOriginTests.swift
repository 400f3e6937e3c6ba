import HTTPSemantics
import ResumableUpload
import Testing

@testable import TransferServer

@Suite("Cross-origin requests")
struct CrossOriginTests {
    private let policy = CrossOrigin(origins: ["https://app.example"])

    @Test("XCO-02 VER-27: a page of a named origin can read every field of the protocol")
    func exposes() {
        let fields = policy.responseFields(for: ["Origin": "https://app.example"])
        #expect(fields["Access-Control-Allow-Origin"] == "https://app.example")
        #expect(fields["Vary"] == "Origin")
        let exposed = fields["Access-Control-Expose-Headers"]?.split(separator: ", ").map(String.init) ?? []
        for name in UploadFieldName.responseFields + ["Location", "ETag"] { #expect(exposed.contains(name)) }
    }

    @Test(
        "responses to other origins have no CORS fields",
        arguments: ["https://evil.example", "null", "http://app.example"])
    func others(origin: String) {
        let fields = policy.responseFields(for: ["Origin": origin])
        #expect(!fields.contains("Access-Control-Allow-Origin"))
        #expect(fields["Vary"] == "Origin")
        let preflight: Fields = ["Origin": origin, "Access-Control-Request-Method": "PATCH"]
        let answer = policy.optionsFields(for: preflight, methods: [.patch])
        #expect(answer.map(\.name) == ["Vary"])
    }

    @Test("XCO-01 VER-27: a preflight allows the protocol's methods and fields")
    func preflight() {
        let fields = policy.optionsFields(
            for: ["Origin": "https://app.example", "Access-Control-Request-Method": "PATCH"],
            methods: [.head, .patch, .delete])
        #expect(fields["Access-Control-Allow-Methods"] == "HEAD, PATCH, DELETE")
        let allowed = fields["Access-Control-Allow-Headers"]?.split(separator: ", ").map(String.init) ?? []
        for name in UploadFieldName.requestFields + ["Content-Type"] { #expect(allowed.contains(name)) }
    }

    /// The names, in lower case, that the response to a preflight with these lists allows in addition to
    /// ``CrossOrigin/requestFields``.
    private func added(_ lists: String...) -> [String] {
        var preflight: Fields = ["Origin": "https://app.example", "Access-Control-Request-Method": "POST"]
        for list in lists { preflight.append("Access-Control-Request-Headers", list) }
        let fields = policy.optionsFields(for: preflight, methods: [.post])
        let allowed = fields["Access-Control-Allow-Headers"]?.split(separator: ", ").map { $0.lowercased() } ?? []
        #expect(Set(allowed).count == allowed.count)
        #expect(Set(allowed).isSuperset(of: CrossOrigin.requestFields.map { $0.lowercased() }))
        return allowed.filter { name in !CrossOrigin.requestFields.contains { $0.lowercased() == name } }
    }

    @Test("XCO-01: the response to a preflight allows the requested fields")
    func requested() {
        #expect(added() == [])
        #expect(added("") == [])
        #expect(added("upload-metadata,x-csrf-token") == ["upload-metadata", "x-csrf-token"])
        #expect(added("Upload-Length, X-A ,\tx-b", "x-a") == ["x-a", "x-b"])
        #expect(added("tus-resumable,x-request-id") == ["tus-resumable", "x-request-id"])
    }

    @Test("forbidden names and forwarding fields are not allowed, and all other names of the list are allowed")
    func forbidden() {
        for name in [
            "Cookie", "host", "Origin", "Content-Length", "transfer-encoding", "TE", "Upgrade", "Connection", "Via",
            "Sec-Fetch-Site", "sec-", "Proxy-Authorization", "proxy-x", "Forwarded", "X-Forwarded-For",
            "x-forwarded-prefix", "X-Real-IP", "Access-Control-Request-Method", "Expect", "Date", "Set-Cookie", "*",
        ] {
            #expect(added("x-a,\(name),x-b") == ["x-a", "x-b"], "\(name)")
        }
    }

    @Test(
        "a malformed list of requested fields allows none of them",
        arguments: [
            "x-a,", ",x-a", "x-a,,x-b", "x-a x-b", "x-a,x b", "x-a,x:b", "x-a,x(b)", "x-a,\u{e4}", "x-a,x\u{7f}",
            "x-a,\"b\"",
            "x-a;q=1", "x-a\r\nSet-Cookie: b", "*, <script>",
        ])
    func malformed(list: String) {
        #expect(added(list) == [])
    }

    @Test("the list of requested fields has a maximum size")
    func bounded() {
        let long = (0..<1000).map { "x-\($0)" }.joined(separator: ",")
        #expect(long.utf8.count > CrossOrigin.maxRequestedLength)
        #expect(added(long) == [])
        let short = (0..<500).map { "x-\($0)" }.joined(separator: ",")
        #expect(added(short).count == 500)
    }

    @Test("every response to OPTIONS has Vary with the fields of a preflight")
    func vary() {
        for request in [[:], ["Origin": "https://app.example"]] as [Fields] {
            let fields = policy.optionsFields(for: request, methods: [.post])
            #expect(fields["Vary"] == "Access-Control-Request-Method, Access-Control-Request-Headers")
        }
    }
}
