import HTTPSemantics
import ResumableUpload
import Testing

@Suite struct RequestKindTests {
    private func kind(_ method: Method, _ fields: Fields = [:], upload: Bool = false, _ dialect: Dialect) -> RequestKind
    {
        RequestKind(method: method, isUploadResource: upload, fields: fields, dialect: dialect)
    }

    @Test("CRE-08: every method that has a representation creates an upload", arguments: Dialect.allCases)
    func creation(dialect: Dialect) {
        for method in [Method.post, .put, .patch, Method(rawValue: "STORE")] {
            for complete in [true, false] {
                #expect(
                    kind(method, dialect.request(complete: complete), dialect) == .creation(isComplete: complete))
            }
        }
    }

    @Test("CRE-09: without a completeness field a request is plain", arguments: Dialect.allCases)
    func plain(dialect: Dialect) {
        for method in [Method.post, .put, .patch, .get, .head, .delete] {
            #expect(kind(method, dialect.request(length: 10), dialect) == .plain)
        }
    }

    @Test(
        "CRE-09: requests of methods without a representation are plain, even with the fields of an upload",
        arguments: Dialect.allCases)
    func withoutContent(dialect: Dialect) {
        for method in [Method.get, .head, .delete, .connect, .trace] {
            #expect(kind(method, dialect.request(complete: true), dialect) == .plain)
        }
    }

    @Test("CRE-10: an invalid completeness field is ignored", arguments: ["1", "true", "?2", "", "?1, ?1"])
    func void(value: String) {
        for dialect in Dialect.allCases {
            let fields: Fields = ["Upload-Complete": value, "Upload-Incomplete": value]
            #expect(kind(.post, fields, dialect) == .plain)
        }
    }

    @Test("VER-05: version 3 ignores Upload-Complete, all others ignore Upload-Incomplete")
    func otherField() {
        #expect(kind(.post, ["Upload-Complete": "?1"], .interop3) == .plain)
        for dialect in Dialect.allCases where dialect != .interop3 {
            #expect(kind(.post, ["Upload-Incomplete": "?0"], dialect) == .plain)
        }
    }

    @Test(
        "APP-27 OFF-07: an upload resource accepts HEAD, GET, PATCH, DELETE and OPTIONS only",
        arguments: Dialect.allCases)
    func uploadResource(dialect: Dialect) {
        let fields = dialect.request(complete: true)
        #expect(kind(.head, fields, upload: true, dialect) == .retrieval)
        #expect(kind(.get, fields, upload: true, dialect) == .retrieval)
        #expect(kind(.patch, fields, upload: true, dialect) == .append)
        #expect(kind(.delete, fields, upload: true, dialect) == .cancellation)
        #expect(kind(.options, upload: true, dialect) == .discovery)
        for method in [Method.post, .put, .trace, Method(rawValue: "STORE"), Method(rawValue: "patch")] {
            #expect(kind(method, fields, upload: true, dialect) == .notAllowed)
        }
        let refusal = dialect.responses.refused(.methodNotAllowed)
        #expect(refusal.status == 405)
        #expect(refusal.fields["Allow"] == "HEAD, GET, PATCH, DELETE, OPTIONS")
    }

    @Test("LIM-13: an OPTIONS request is a discovery", arguments: Dialect.allCases)
    func discovery(dialect: Dialect) {
        #expect(kind(.options, [:], dialect) == .discovery)
        #expect(kind(.options, dialect.request(complete: true), dialect) == .discovery)
    }
}
