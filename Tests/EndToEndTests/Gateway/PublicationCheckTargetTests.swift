import ConformanceKit
import HTTPSemantics
import TestSupport
import Testing

/// A check that publishes a file under another path.
@Suite("Gateway: another path from a check", .blocking)
struct GatewayCheckTargetTests {
    private typealias Fixture = CheckFixture
    private static let content = Array("the content".utf8)

    /// Runs `body` with a server whose check accepts every file at another path.
    private func withTarget(
        _ target: String, options: [String] = [], _ body: (ServerProcess, ScriptedServer) throws -> Void
    ) throws {
        let endpoint = try Fixture.responses(("200 OK", [("Onward-Target", target)], ""))
        try Fixture.withCheck(by: endpoint, options: options) { server in try body(server, endpoint) }
    }

    @Test(
        "the file gets the other path, and the response has it",
        arguments: [
            ("PUT", "/files/in/a.txt", "/files/clean/b%20c.txt", "clean/b c.txt", "clean/b c.txt"),
            ("PUT", "/files/in/a.txt", "/files/clean/", "clean/a.txt", "clean/a (1).txt"),
            ("PUT", "/files/in/a.txt", "/files/", "a.txt", "a (1).txt"),
            ("PUT", "/files/in/a.txt", "/files/in/a.txt", "in/a.txt", "in/a.txt"),
            ("POST", "/files/in/", "/files/clean/", "clean/given.txt", "clean/given (1).txt"),
            ("POST", "/files/in/", "/files/clean/x.tar", "clean/x.tar", "clean/x (1).tar"),
        ], [Interop.v3, .v6, .v8, nil])
    func moved(paths: (String, String, String, String, String), version: Interop?) throws {
        let (method, requested, target, first, second) = paths
        try withTarget(target) { server, _ in
            let fields = [("Content-Type", "text/x-test"), ("Content-Disposition", "inline; filename=given.txt")]
            for (round, name) in [first, second].enumerated() {
                var request = Request.creation(version, method, requested, complete: true, .bytes(Self.content))
                // The second upload is an ordinary request.
                if round == 1 { request = Request(method, requested, [], .bytes(Self.content)) }
                request.fields += fields
                let response = try server.exchange(request)
                let isReplaced = round == 1 && first == second
                #expect(response.status == (isReplaced ? 204 : 201), "\(response)")
                let place = response.value("Content-Location") ?? response.value("Location")
                let path = "/files/" + name.replacing(" ", with: "%20")
                if !isReplaced || target != requested { #expect(place?.hasSuffix(path) == true, "\(response)") }
                #expect(server.published(name) == Self.content, "\(name)")
                let served = try server.exchange(.get(path))
                #expect(served.value("Content-Type") == "text/x-test", "\(served)")
                #expect(served.value("ETag") == response.value("ETag"), "\(response)")
            }
            #expect(
                Set(server.publishedNames().filter { $0.hasSuffix(".txt") || $0.hasSuffix(".tar") }) == [first, second])
        }
    }

    @Test(
        "a path that is not valid is no verdict: nothing is published, and the upload waits",
        arguments: [
            "../x", "/files/../x", "/files/%2e%2e/x", "/files/a/../../x", "/uploads/x", "/x", "x", "files/x",
            "//files/x",
            "/files//x", "/files/a%2Fb", "/files/a%00", "/files/%C3", "http://127.0.0.1/files/x",
            "https://e.example/files/x",
            "/files/x?y", "/files/x#y", "/FILES/x", "/filesx", "/files/" + String(repeating: "x", count: 256),
            "/files" + String(repeating: "/x", count: 101), "*", "/files/a\\b", "/files/a b", "/", "/files",
        ])
    func hostile(target: String) throws {
        let endpoint = try Fixture.responses(("200 OK", [("Onward-Target", target)], ""), ("200 OK", [], ""))
        try Fixture.withCheck(by: endpoint) { server in
            let location = try server.begin(.v8, "/files/file.bin", Self.content)
            let response = try GatewayUploadFixture.complete(server, location, at: Self.content.count)
            GatewayUploadFixture.expectUnavailable(response, retryAfter: "5", length: Self.content.count)
            Fixture.expectNoFile(server)
            try Fixture.expectLog(server, "not a valid path of a file")
            #expect(try GatewayUploadFixture.complete(server, location, at: Self.content.count).status == 201)
            #expect(server.publishedNames() == ["file.bin"])
        }
    }

    @Test("a path that belongs to a directory, or below a file, is no verdict", arguments: ["/files/d", "/files/f/x"])
    func occupied(target: String) throws {
        let endpoint = try Fixture.responses(
            ("200 OK", [], ""), ("200 OK", [], ""), ("200 OK", [("Onward-Target", target)], ""), ("200 OK", [], ""))
        try Fixture.withCheck(by: endpoint) { server in
            for path in ["/files/d/x", "/files/f"] {
                #expect(try server.exchange(Request("PUT", path, [], .bytes([1]))).status == 201)
            }
            let location = try server.begin(.v8, "/files/file.bin", Self.content)
            let response = try GatewayUploadFixture.complete(server, location, at: Self.content.count)
            GatewayUploadFixture.expectUnavailable(response, retryAfter: "5", length: Self.content.count)
            try Fixture.expectLog(server, "it returned the path \(target), but")
            #expect(try GatewayUploadFixture.complete(server, location, at: Self.content.count).status == 201)
            #expect(server.published("file.bin") == Self.content)
        }
    }

    @Test("another path replaces a file only if the client may replace it, and its conditions hold there")
    func replacement() throws {
        let directory = try TemporaryDirectory()
        let tokens = try directory.file(
            "tokens",
            Array(
                """
                writer token-of-the-writer-0123456789 write,read
                creator token-of-the-creator-0123456789 create,read
                inner token-of-the-inner-0123456789 write,read prefix=/files/in/

                """.utf8))
        try withTarget("/files/clean/x", options: ["--token-file", tokens]) { server, _ in
            func put(_ name: String, _ content: String, _ fields: (String, String)...) throws -> Response {
                var request = Request("PUT", "/files/in/a", [], .bytes(Array(content.utf8)))
                request.fields += fields + [("Authorization", "Bearer token-of-the-\(name)-0123456789")]
                return try server.exchange(request)
            }
            // The path is outside the prefix: the check decides about new files.
            let created = try put("inner", "one")
            #expect(created.status == 201 && created.value("Location") == "/files/clean/x", "\(created)")
            for name in ["creator", "inner"] {
                let refused = try put(name, "two")
                #expect(refused.status == 403 && refused.problem?.code == "insufficient-scope", "\(refused)")
            }
            #expect(try put("writer", "two", ("If-None-Match", "*")).status == 412)
            #expect(server.published("clean/x") == Array("one".utf8))
            let replaced = try put("writer", "two")
            #expect(replaced.status == 204 && replaced.value("Location") == "/files/clean/x", "\(replaced)")
            #expect(server.published("clean/x") == Array("two".utf8))
            // The requested path has no file, so If-Match fails before the content is received.
            #expect(try put("writer", "three", ("If-Match", try #require(replaced.value("ETag")))).status == 412)
            #expect(server.publishedNames().sorted() == ["clean", "clean/x"])
        }
    }

    @Test("If-Match holds for the requested file at first, and for the replaced file at publication")
    func match() throws {
        let endpoint = try Fixture.responses(("200 OK", [], ""), ("200 OK", [("Onward-Target", "/files/y")], ""))
        try Fixture.withCheck(by: endpoint) { server in
            let first = try server.exchange(Request("PUT", "/files/x", [], .bytes([1])))
            let tag = try #require(first.value("ETag"))
            let moved = try server.exchange(Request("PUT", "/files/x", [("If-Match", tag)], .bytes([2])))
            #expect(moved.status == 412, "\(moved)")
            #expect(server.published("x") == [1] && server.published("y") == nil)
        }
    }

    @Test("with --own-prefix the path has this prefix")
    func ownPrefix() throws {
        try withTarget("/.onward/files/y", options: ["--own-prefix", "/.onward"]) { server, endpoint in
            let response = try server.exchange(Request("PUT", "/.onward/files/x", [], .bytes(Self.content)))
            #expect(response.status == 201 && response.value("Location") == "/.onward/files/y", "\(response)")
            #expect(endpoint.requests.first?.fields["Onward-Target"] == "/.onward/files/x")
            #expect(server.published("y") == Self.content)
        }
    }
}
