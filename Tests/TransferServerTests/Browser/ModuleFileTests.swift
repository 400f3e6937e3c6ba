import BrowserAssets
import HTTPSemantics
import Testing
import UploadStorage

@testable import TransferServer

@Suite("The module for browsers")
struct ModuleFileTests {
    private static let script = "/onward/\(BrowserAssets.version)/onward.js"

    /// Sends a request to a server whose files need a token, and which allows pages of one origin.
    private func send(
        _ method: HTTPSemantics.Method, _ target: String, _ fields: Fields = [:],
        handlers: [(prefix: String, handler: any TargetHandler)] = []
    ) async throws -> Response {
        let store = try UploadStore.inMemory()
        defer { store.close() }
        var configuration = ServerConfiguration(corsOrigins: ["https://app.example"])
        configuration.authorizer = TokenAuthorizer(TokenList())
        return try await InProcessServer(configuration: configuration, store: store, handlers: handlers)
            .send(method, target, fields: fields)
    }

    @Test(
        "every origin can load the files of the current version without a token, and keep them for ever",
        arguments: [
            ("onward.js", "text/javascript; charset=utf-8", BrowserAssets.module),
            ("onward.d.ts", "application/typescript; charset=utf-8", BrowserAssets.moduleTypes),
        ])
    func served(name: String, mediaType: String, content: [UInt8]) async throws {
        #expect(content.count > 100)
        let path = "/onward/\(BrowserAssets.version)/\(name)"
        for origin in ["https://app.example", "https://other.example", "null"] {
            let response = try await send(.get, path, ["Origin": origin])
            #expect(response.status == 200 && response.content.bytes == content)
            #expect(response.fields["Content-Type"] == mediaType)
            #expect(response.fields["Cache-Control"] == "public, max-age=31536000, immutable")
            #expect(response.fields.values("Access-Control-Allow-Origin") == ["*"])
            #expect(response.fields["Cross-Origin-Resource-Policy"] == "cross-origin")
            #expect(response.fields["X-Content-Type-Options"] == "nosniff")
            #expect(!response.fields.contains("Vary"))
        }
        let response = try await send(.head, path)
        let tag = try #require(response.fields["ETag"])
        #expect(response.status == 200 && tag.hasPrefix("\"") && tag.utf8.count == 66)
        let unchanged = try await send(.get, path, ["If-None-Match": tag])
        #expect(unchanged.status == 304 && unchanged.fields["ETag"] == tag)
        #expect(unchanged.fields.values("Access-Control-Allow-Origin") == ["*"])
        #expect(try await send(.get, path, ["If-None-Match": "\"x\""]).status == 200)
        let refused = try await send(.put, path)
        #expect(refused.status == 405 && refused.fields["Allow"] == "GET, HEAD")
    }

    @Test("a server in the same process has its paths below the prefix of the configuration")
    func prefix() async throws {
        let store = try UploadStore.inMemory()
        defer { store.close() }
        var configuration = ServerConfiguration()
        configuration.ownPrefix = "/.onward"
        let server = InProcessServer(configuration: configuration, store: store, handlers: [])
        #expect(try await server.send(.get, "/.onward" + Self.script).status == 200)
        #expect(try await server.send(.get, Self.script).status == 404)
    }

    @Test("the response to another version names the version of the server")
    func otherVersion() async throws {
        for path in ["/onward/0.1.0/onward.js", "/onward/9/onward.d.ts"] {
            let response = try await send(.get, path)
            #expect(response.status == 404 && response.fields["Access-Control-Allow-Origin"] == "*")
            let text = String(decoding: response.content.bytes ?? [], as: UTF8.self)
            #expect(text.contains("version \(BrowserAssets.version) "), "\(text)")
        }
        // Other paths need a token, as every path.
        let others = ["/onward/", "/onward/x", Self.script + "/", "/onward//onward.js", "/onward/0.2.0/page.js"]
        for path in others { #expect(try await send(.get, path).status == 401, "\(path)") }
    }

    @Test("a handler for all paths gets nothing below /onward, and with a prefix nothing below /onward there")
    func handlers() throws {
        for prefix in ["", "/.onward"] {
            let routes = Routes([("", FunctionHandler { _ in .text("") })], ownPrefix: prefix)
            func label(_ path: String) throws -> String {
                routes.route(of: try #require(RequestTarget(parsing: path))).label
            }
            #expect(try label(prefix + Self.script) == "/onward")
            #expect(try label(prefix + "/onward/0.1.0/onward.js") == "/onward")
            for path in ["/onward/app.js", "/onward", "/%6Fnward/x"] { #expect(try label(prefix + path) == "other") }
            for path in ["/onwards/x", "/x" + Self.script] { #expect(try label(prefix + path) == "/") }
            if !prefix.isEmpty { #expect(try label(Self.script) == "/") }
        }
    }
}
