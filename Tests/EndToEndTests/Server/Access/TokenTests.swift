import ConformanceKit
import FoundationEssentials
import Glibc
import Testing

/// Access with tokens (draft section 13, RFC 6750).
@Suite("Tokens", .serialized, .blocking)
struct TokenTests {
    @Test("an upload and its quota belong to the principal, whichever of its tokens is used")
    func rotation() throws {
        let fixture = try TokenFixture("anna old-token-of-anna-1", "--max-uploads", "1")
        let location = try fixture.server.begin(token: "old-token-of-anna-1")
        try fixture.reload("anna old-token-of-anna-1\nanna sha256:" + Self.newTokenHash)
        let again = Request.creation(.v8, complete: false, .bytes([1])).with(token: Self.newToken)
        #expect(try fixture.server.exchange(again).status == 429)
        try fixture.reload("anna sha256:" + Self.newTokenHash)
        let old = try fixture.server.exchange(.retrieval(.v8, location).with(token: "old-token-of-anna-1"))
        #expect(old.status == 401)
        let completion = Request.append(.v8, location, at: 10, complete: true, .bytes(Payload.bytes(5)))
        #expect(try fixture.server.exchange(completion.with(token: Self.newToken)).status == 201)
    }

    private static let newToken = "new-token-of-anna-2"
    // printf %s new-token-of-anna-2 | sha256sum
    private static let newTokenHash = "bdec52cfbf84f806cf1d8384def3ee428376998184db39cd872225b5e7905b66"

    @Test(
        "SEC-05: if a token is revoked during the last append, nothing is published; the upload can be completed later"
    )
    func revocation() throws {
        let fixture = try TokenFixture(sampleTokens)
        let server = fixture.server
        let location = try fixture.server.begin(token: "token-of-anna-0001")
        let connection = try server.connect()
        let content = Payload.bytes(100)
        try connection.send(
            Request.append(.v8, location, at: 10, complete: true, .declared(100)).with(token: "token-of-anna-0001")
                .with("Expect", "100-continue"))
        // The head of the request has been checked.
        #expect(try connection.requireInterim().status == 100)
        try connection.send(Array(content.prefix(60)))
        try fixture.reload(sampleTokens.replacing("token-of-anna-0001", with: "token-of-anna-0002"))
        try connection.send(Array(content.suffix(40)))
        let response = try connection.readResponse()
        #expect(response.status == 401)
        #expect(response.offset == 110)
        #expect(server.publishedNames().isEmpty)
        #expect(try server.exchange(.retrieval(.v8, location).with(token: "token-of-anna-0001")).status == 401)
        let renewed = "token-of-anna-0002"
        let state = try server.exchange(.retrieval(.v8, location).with(token: renewed))
        #expect(state.offset == 110)
        #expect(state.complete == false)
        let last = Request.append(.v8, location, at: 110, complete: true, .bytes([])).with(token: renewed)
        #expect(try server.exchange(last).status == 201)
        #expect(server.published("file.bin") == Payload.bytes(10) + content)
    }

    @Test("after a scope is removed between two appends, requests to the upload get 403")
    func narrowed() throws {
        let fixture = try TokenFixture(sampleTokens)
        let location = try fixture.server.begin(token: "token-of-anna-0001")
        try fixture.reload("anna token-of-anna-0001 read")
        for request in [
            Request.append(.v8, location, at: 10, complete: true, .bytes([1])), .retrieval(.v8, location),
            .cancellation(.v8, location),
        ] {
            #expect(try fixture.server.exchange(request.with(token: "token-of-anna-0001")).status == 403)
        }
        #expect(fixture.server.publishedNames().isEmpty)
    }

    @Test("a server that nohup has started reads the token file again, too")
    func ignoredSignal() throws {
        let fixture = try TokenFixture("anna token-of-anna-0001", [], startedBy: ["/usr/bin/nohup"])
        try fixture.reload("anna token-of-anna-0002")
        let request = Request("GET", "/files/").with(token: "token-of-anna-0001")
        #expect(try fixture.server.exchange(request).status == 401)
    }

    @Test("an invalid token file changes nothing on reload, and prevents a start")
    func badFile() throws {
        let fixture = try TokenFixture(sampleTokens)
        try fixture.reload("anna short-but-good\nben token-of-ben-00001 everything")
        #expect(fixture.server.log.contains("line 2: 'everything' is not one of the scopes"))
        let request = Request.get("/files/").with(token: "token-of-anna-0001")
        #expect(try fixture.server.exchange(request).status == 200)
        #expect(!fixture.server.log.contains("token-of"))
        let root = fixture.path + "-root"
        try OnwardRun(["serve", "--root", root, "--token-file", fixture.path]).expect(64, "line 2", "everything")
        try OnwardRun(["serve", "--root", root, "--token-file", fixture.path + "-none"]).expect(
            64, "--token-file: ", "ENOENT")
        try OnwardRun(["serve", "--root", root, "--token-file", fixture.path, "--allow-anonymous"]).expect(
            64, "--public-read")
        try OnwardRun(["serve", "--root", root, "--public-read"]).expect(64, "--token-file")
        #expect(!FileManager.default.fileExists(atPath: root))
    }

    @Test("the log has the principal's name, and never the token")
    func log() throws {
        let fixture = try TokenFixture(sampleTokens, "--log-format", "json", "--log-level", "debug")
        _ = try fixture.server.begin(token: "token-of-anna-0001")
        _ = try fixture.server.exchange(.get("/files/x").with(token: "token-of-nobody"))
        let log = try fixture.server.process.awaitErrorOutput { text -> String? in
            text.contains(#""principal":"anna""#) && text.contains("invalid-token") ? text : nil
        }
        #expect(!log.contains("token-of"))
    }

    @Test("with tokens the server accepts requests from other machines, for every host name, and through proxies")
    func beyondLoopback() throws {
        let fixture = try TokenFixture(sampleTokens, "--listen", "0.0.0.0:0")
        let request = Request("PUT", "/files/a", [("Host", "files.example"), ("Via", "1.1 proxy")], .bytes([1]))
        #expect(try fixture.server.exchange(request.with(token: "token-of-anna-0001")).status == 201)
        #expect(try fixture.server.exchange(request).status == 401)
    }
}
