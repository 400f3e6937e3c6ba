import ConformanceKit
import Testing

/// Tests `--cors-origin`, and the requests for files by pages of other origins. The harness tests resumable uploads by
/// pages.
@Suite("Cross-origin requests over the wire", .blocking)
struct CrossOriginWireTests {
    private static let origin = "https://app.example"

    private func preflight(_ target: String, _ method: String, origin: String = Self.origin) -> Request {
        Request(
            "OPTIONS", target,
            [
                ("Origin", origin), ("Access-Control-Request-Method", method),
                ("Access-Control-Request-Headers", "upload-complete, upload-draft-interop-version"),
            ])
    }

    @Test(
        "XCO-01 VER-27: the preflight allows the methods and request fields of uploads, and has the limits",
        arguments: [("/files/f.bin", "PUT"), ("/files/", "POST"), ("/files/f.bin", "HEAD"), ("/files/f.bin", "DELETE")])
    func preflight(target: String, method: String) throws {
        try withServer("--cors-origin", Self.origin, "--max-size", "1G") { server in
            let response = try server.exchange(preflight(target, method))
            #expect(response.status == 200 || response.status == 204)
            #expect(response.value("Access-Control-Allow-Origin") == Self.origin)
            #expect(response.list("Access-Control-Allow-Methods").contains(method.lowercased()))
            let fields = Set(response.list("Access-Control-Allow-Headers"))
            for name in [
                "upload-complete", "upload-incomplete", "upload-offset", "upload-length",
                "upload-draft-interop-version", "content-type", "content-disposition", "range", "if-range", "if-match",
                "if-none-match", "repr-digest", "content-digest", "authorization",
            ] {
                #expect(fields.contains(name), "\(name)")
            }
            #expect(response.limits?["max-size"] == 1_000_000_000)
            #expect(response.list("Vary").contains("origin"))
        }
    }

    @Test("XCO-02: a page can read the fields of responses to requests for files, including refusals")
    func files() throws {
        try withServer("--cors-origin", Self.origin, "--cors-origin", "https://other.example") { server in
            let page = ("Origin", Self.origin)
            let created = try server.exchange(Request("PUT", "/files/f.bin", [page], .bytes([1, 2, 3])))
            #expect(created.status == 201)
            for response in [
                created, try server.download("f.bin", [page, ("Range", "bytes=0-1")]),
                try server.download("none.bin", [page]),
            ] {
                #expect(response.value("Access-Control-Allow-Origin") == Self.origin)
                let exposed = Set(response.list("Access-Control-Expose-Headers"))
                for name in ["location", "etag", "content-range"] { #expect(exposed.contains(name), "\(name)") }
            }
        }
    }

    @Test("A page of an origin that is not allowed can neither read nor change anything")
    func foreign() throws {
        let other = [("Origin", "https://evil.example"), ("Origin", "null"), ("Origin", "https://app.example.evil")]
        for options in [[], ["--cors-origin", Self.origin]] {
            let server = try ServerProcess(options)
            try server.publish([1, 2, 3], as: "f.bin")
            for field in other {
                let read = try server.download("f.bin", [field])
                #expect(!read.fields.contains("Access-Control-Allow-Origin"))
                let written = try server.exchange(Request("PUT", "/files/f.bin", [field], .bytes([9])))
                #expect(written.status == 403)
                #expect(written.problem?.code == "foreign-origin")
                #expect(try server.exchange(Request("DELETE", "/files/f.bin", [field])).status == 403)
                let asked = try server.exchange(preflight("/files/f.bin", "PUT", origin: field.1))
                #expect(!asked.fields.contains("Access-Control-Allow-Origin"))
                #expect(!asked.fields.contains("Access-Control-Allow-Methods"))
            }
            #expect(server.published("f.bin") == [1, 2, 3])
            let own = try server.exchange(
                Request("PUT", "/files/f.bin", [("Origin", "http://\(server.authority)")], .bytes([4])))
            #expect(own.status == 204)
        }
    }

    @Test("If the response depends on the origin, Vary names it, with and without an origin")
    func vary() throws {
        try withServer("--cors-origin", Self.origin) { server in
            try server.publish([1], as: "f.bin")
            #expect(try server.download("f.bin").list("Vary").contains("origin"))
            #expect(try server.download("f.bin", [("Origin", Self.origin)]).list("Vary").contains("origin"))
            let listing = try server.exchange(.get("/files/"))
            #expect(listing.list("Vary").contains("origin") && listing.list("Vary").contains("accept"))
        }
        try withServer("--cors-origin", "*") { server in
            try server.publish([1], as: "f.bin")
            let response = try server.download("f.bin", [("Origin", "https://anyone.example")])
            #expect(response.value("Access-Control-Allow-Origin") == "*")
            #expect(!response.fields.contains("Access-Control-Allow-Credentials"))
        }
    }
}
