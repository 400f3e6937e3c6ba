import ConformanceKit
import HTTPSemantics
import HTTPTestSupport
import Testing

/// The caching rules for files and listings.
@Suite("Caching", .timeLimit(.minutes(30)))
struct CachingTests {
    private static let token = "token-of-anna-0123456789"

    /// The values of Cache-Control in all kinds of responses for a file, and in a listing.
    private func values(_ server: any TestedService, token: String? = nil) throws -> (
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
        try withService { server in
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
        let closed = try service()
        let put = Request("PUT", "/files/f.bin", [], .bytes([1, 2, 3])).with(token: Self.token)
        #expect(try closed.exchange(put).status == 201)
        #expect(try values(closed, token: Self.token) == (["private, no-cache"], ["private, no-cache"]))
        #expect(try closed.exchange(.get("/files/f.bin")).value("Cache-Control") == "no-store")
        let open = try service(publicRead: true)
        #expect(try open.exchange(put).status == 201)
        #expect(try values(open) == (["no-cache"], ["no-cache"]))
        // The token was sent, but not needed.
        #expect(try values(open, token: Self.token) == (["no-cache"], ["no-cache"]))
    }

    /// A service that requires the token, unless it has public files.
    private func service(publicRead: Bool = false, _ cacheControl: String? = nil) throws -> any TestedService {
        var settings = try ServiceSettings.tokens("anna \(Self.token)", publicRead: publicRead)
        if let cacheControl { settings.server.cacheControl = try #require(CacheControl(parsing: cacheControl)) }
        return try InProcessService(settings)
    }

    @Test("The configured Cache-Control applies to files; private is added if a credential is needed")
    func configured() throws {
        let value = try #require(CacheControl(parsing: "Max-Age=60,must-revalidate"))
        try withService(settings: .with { $0.server.cacheControl = value }) { server in
            try server.publish([1, 2, 3], as: "f.bin")
            #expect(try values(server) == (["max-age=60, must-revalidate"], ["no-cache"]))
            #expect(try server.download("none").value("Cache-Control") == "no-cache")
            #expect(try server.download("f.bin", [("Range", "bytes=9-")]).value("Cache-Control") == "no-cache")
            #expect(try server.download("f.bin", [("If-Match", "\"x\"")]).value("Cache-Control") == "no-cache")
        }
        let put = Request("PUT", "/files/f.bin", [], .bytes([1, 2, 3])).with(token: Self.token)
        let closed = try service("max-age=60")
        #expect(try closed.exchange(put).status == 201)
        #expect(
            try values(closed, token: Self.token) == (["private, max-age=60"], ["private, no-cache"]))
        let open = try service(publicRead: true, "public, max-age=60")
        #expect(try open.exchange(put).status == 201)
        #expect(try values(open) == (["public, max-age=60"], ["no-cache"]))
    }
}
