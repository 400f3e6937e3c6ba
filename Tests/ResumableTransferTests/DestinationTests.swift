import Foundation
import HTTPSemantics
import ResumableTransfer
import Testing

@Suite("Client: destinations") struct DestinationTests {
    @Test("a destination whose URL is no file URL cannot be used", arguments: ["https://files.example/a", "a%20b"])
    func otherScheme(text: String) async throws {
        let fixture = try MockFixture { _ in MockResponse(.ok, ["ETag": "\"one\""], content: "hello") }
        var url = try #require(URL(string: text))
        if url.scheme == "https" { url = try #require(URL(string: "https://host" + fixture.directory.path + "/a")) }
        let request = TransferRequest("https://files.example/a")
        let error = await transferError { _ = try await fixture.client.download(request, to: .file(url)).value() }
        #expect(error?.code == .destinationUnusable && fixture.requests.isEmpty)
        #expect(!FileManager.default.fileExists(atPath: fixture.directory.path + "/a"))
    }
}
