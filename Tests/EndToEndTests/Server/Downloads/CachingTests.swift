import ConformanceKit
import TestSupport
import Testing

/// The caching rules for files and listings.
@Suite("Caching", .blocking)
struct CachingTests {
    private static let token = "token-of-anna-0123456789"

    /// The values of Cache-Control in all kinds of responses for a file, and in a listing.
    private func values(_ server: ServerProcess, token: String? = nil) throws -> (
        file: Set<String?>, listing: Set<String?>
    ) {
        let tag = try #require(try server.exchange(Request.get("/files/f.bin").with(token: token)).value("ETag"))
        var file: Set<String?> = []
        for (fields, status) in [
            ([], 200), ([("Range", "bytes=0-1")], 206), ([("Range", "bytes=0-0,2-2")], 206),
            ([("If-None-Match", tag)], 304),
        ] {
            for method in ["GET", "HEAD"] {
                let response = try server.exchange(Request(method, "/files/f.bin", fields).with(token: token))
                #expect(response.status == (method == "HEAD" && status == 206 ? 200 : status))
                file.insert(response.value("Cache-Control"))
            }
        }
        var listing: Set<String?> = []
        for accept in ["*/*", "text/html", "application/json"] {
            let response = try server.exchange(Request.get("/files/").with("Accept", accept).with(token: token))
            #expect(response.value("Vary")?.lowercased() == "accept")
            // A listing has no validators.
            #expect(!response.fields.contains("ETag") && !response.fields.contains("Last-Modified"))
            listing.insert(response.value("Cache-Control"))
        }
        return (file, listing)
    }

    @Test(
        "RNG-17: caches must revalidate files and listings; private is added only if a credential was needed")
    func defaults() throws {
        try withServer { server in
            try server.publish([1, 2, 3], as: "f.bin")
            #expect(try values(server) == (["no-cache"], ["no-cache"]))
            // The response for a missing file and the redirection to a directory have the same value.
            #expect(try server.download("none").value("Cache-Control") == "no-cache")
            try server.publish([1], as: "d/f.bin")
            #expect(try server.download("d").value("Cache-Control") == "no-cache")
            // The revalidation detects a replaced file.
            let tag = try #require(try server.download("f.bin").value("ETag"))
            try server.publish([4, 5, 6], as: "f.bin")
            let replaced = try server.download("f.bin", [("If-None-Match", tag)])
            #expect(replaced.status == 200 && replaced.content == [4, 5, 6])
        }
        let line = "anna \(Self.token)"
        let closed = try TokenFixture(line)
        let put = Request("PUT", "/files/f.bin", [], .bytes([1, 2, 3])).with(token: Self.token)
        #expect(try closed.server.exchange(put).status == 201)
        #expect(try values(closed.server, token: Self.token) == (["private, no-cache"], ["private, no-cache"]))
        #expect(try closed.server.exchange(.get("/files/f.bin")).value("Cache-Control") == "no-store")
        let open = try TokenFixture(line, "--public-read")
        #expect(try open.server.exchange(put).status == 201)
        #expect(try values(open.server) == (["no-cache"], ["no-cache"]))
        // The token was sent, but not needed.
        #expect(try values(open.server, token: Self.token) == (["no-cache"], ["no-cache"]))
    }

    @Test("--cache-control applies to files; private is added if a credential is needed")
    func configured() throws {
        try withServer("--cache-control", "Max-Age=60,must-revalidate") { server in
            try server.publish([1, 2, 3], as: "f.bin")
            #expect(try values(server) == (["max-age=60, must-revalidate"], ["no-cache"]))
            #expect(try server.download("none").value("Cache-Control") == "no-cache")
            #expect(try server.download("f.bin", [("Range", "bytes=9-")]).value("Cache-Control") == "no-cache")
            #expect(try server.download("f.bin", [("If-Match", "\"x\"")]).value("Cache-Control") == "no-cache")
        }
        try withServer(environment: ["ONWARD_CACHE_CONTROL": "max-age=5"]) { server in
            try server.publish([1, 2, 3], as: "f.bin")
            #expect(try values(server).file == ["max-age=5"])
        }
        let put = Request("PUT", "/files/f.bin", [], .bytes([1, 2, 3])).with(token: Self.token)
        let closed = try TokenFixture("anna \(Self.token)", "--cache-control", "max-age=60")
        #expect(try closed.server.exchange(put).status == 201)
        #expect(
            try values(closed.server, token: Self.token) == (["private, max-age=60"], ["private, no-cache"]))
        let open = try TokenFixture("anna \(Self.token)", "--public-read", "--cache-control", "public, max-age=60")
        #expect(try open.server.exchange(put).status == 201)
        #expect(try values(open.server) == (["public, max-age=60"], ["no-cache"]))
    }

    @Test("If --cache-control has public or s-maxage without --public-read, serve ends with 64 and names --public-read")
    func sharing() throws {
        let directory = try TemporaryDirectory()
        try TokenFixture.write("anna \(Self.token)", to: directory.path + "/tokens")
        for value in ["public, max-age=60", "s-maxage=60"] {
            let arguments = [
                "serve", "--root", directory.path + "/data", "--token-file", directory.path + "/tokens",
                "--cache-control",
                value,
            ]
            try OnwardRun(arguments).expect(64, "--cache-control", "--public-read")
        }
    }
}
