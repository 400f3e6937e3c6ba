import Foundation
import HTTPSemantics
import ResumableTransfer
import TestSupport
import Testing

@Suite("Client: content codings of downloads", .blocking)
struct ContentCodingTests {
    /// The content is not compressed: no test decodes the content.
    private let file = ScriptedFile(
        bytes: Payload.bytes(400_000), fields: ["ETag": "\"coded\"", "Content-Encoding": "gzip"])

    @Test("RNG-31: the client sends Accept-Encoding: identity unless the caller requests a coding")
    func request() async throws {
        let server = try ScriptedServer { _, reply in try reply.respond(200, ["ETag": "\"a\""], "plain") }
        let fixture = try UploadFixture()
        let result = try await fixture.download(server.url).value()
        _ = try await fixture.download(server.url, ["Accept-Encoding": "br"]).value()
        #expect(server.requests.map { $0.fields["Accept-Encoding"] } == ["identity", "br"])
        #expect(result.contentCoding == nil)
    }

    @Test("a coding that the client did not request is reported, and its bytes are stored and resumed as received")
    func unrequested() async throws {
        let file = file
        let counter = Counter()
        let server = try ScriptedServer { request, reply in
            try file.serve(request, reply, cut: counter.next() == 1 ? 100_000 : nil)
        }
        let fixture = try UploadFixture()
        let result = try await fixture.download(server.url).value()
        expectSame(fixture.result, file.bytes)
        #expect(result.contentCoding == "gzip" && result.received == 400_000)
        #expect(server.requests.last?.fields["Range"] == "bytes=100000-")
    }

    @Test("identity and an empty Content-Encoding are no coding", arguments: ["identity", "", " , identity"])
    func none(value: String) async throws {
        let server = try ScriptedServer { _, reply in try reply.respond(200, ["Content-Encoding": value], "plain") }
        let fixture = try UploadFixture()
        #expect(try await fixture.download(server.url).value().contentCoding == nil)
    }

    @Test("get reports the coding in which the file is stored")
    func command() throws {
        let file = file
        let server = try ScriptedServer { try file.serve($0, $1) }
        let home = try CommandHome()
        let run = try home.run("get", "--json", server.url + "/page.html", "-o", home.path + "/page.html")
        try run.expect(0)
        #expect(
            run.errors.contains("page.html is stored as the server sent it, with the content coding gzip"),
            "\(run.errors)")
        #expect(try run.awaitEvent("completed").text("contentCoding") == "gzip")
    }
}
