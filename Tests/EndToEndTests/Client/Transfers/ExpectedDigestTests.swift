import Foundation
import HTTPSemantics
import ResumableTransfer
import SystemCalls
import TestSupport
import Testing

@Suite("Client: digests that the caller expects", .blocking)
struct ExpectedDigestTests {
    private let bytes = Payload.bytes(900_000)

    private func download(
        _ fixture: UploadFixture, _ server: ScriptedServer, _ digests: [DigestAlgorithm: [UInt8]]
    ) throws -> Download {
        var request = try fixture.download(server.url).request
        request.expectedDigests = digests
        return fixture.client.download(request, to: .file(fixture.destination))
    }

    @Test("an upload sends only the expected digests as Repr-Digest")
    func upload() async throws {
        let model = ScriptedUpload()
        let server = try ScriptedServer { try model.serve($0, $1) }
        let fixture = try UploadFixture { $0.shouldSendDigest = true }
        var request = TransferRequest(server.url + "/target", method: .put, fields: ["Repr-Digest": "sha-256=:AAAA:"])
        request.expectedDigests = [.sha512: bytes.digest(.sha512)]
        _ = try await fixture.client.upload(request, from: DataSource(Data(bytes))).value()
        #expect(server.requests.first?.fields.values("Repr-Digest") == [bytes.digestField(.sha512)])
    }

    @Test("a download with the expected digests appears at its destination, and a download with other digests fails")
    func download() async throws {
        let file = ScriptedFile(bytes: bytes)
        let server = try ScriptedServer { try file.serve($0, $1) }
        let fixture = try UploadFixture()
        let right: [DigestAlgorithm: [UInt8]] = [.sha256: bytes.digest(), .sha512: bytes.digest(.sha512)]
        _ = try await download(fixture, server, right).value()
        expectSame(fixture.result, bytes)
        try FileManager.default.removeItem(atPath: fixture.destination)
        var wrong = right
        wrong[.sha512] = [UInt8]([1]).digest(.sha512)
        let error = await (try download(fixture, server, wrong)).failure()
        #expect(error?.code == .digestMismatch && error?.resumeData == nil && fixture.downloads.isEmpty)
    }

    @Test("both the digest of the server and that of the caller have to match", arguments: [true, false])
    func both(isServerRight: Bool) async throws {
        let right = bytes.digestField()
        let wrong = [UInt8]([1]).digest()
        let file = ScriptedFile(
            bytes: bytes, fields: ["ETag": "\"a\"", "Repr-Digest": isServerRight ? right : [UInt8]([1]).digestField()])
        let server = try ScriptedServer { try file.serve($0, $1) }
        let fixture = try UploadFixture()
        let error = await (try download(fixture, server, [.sha256: isServerRight ? wrong : bytes.digest()])).failure()
        #expect(error?.code == .digestMismatch && fixture.downloads.isEmpty)
    }

    @Test(
        "a download that another client resumes from resume data alone is compared with the expected digests, too",
        arguments: [true, false])
    func resumed(isRight: Bool) async throws {
        let file = ScriptedFile(bytes: bytes)
        let counter = Counter()
        let server = try ScriptedServer { request, reply in
            try file.serve(request, reply, cut: counter.next() == 1 ? 400_000 : nil)
        }
        let fixture = try UploadFixture { $0.shouldRetry = { _, _, _ in .stop } }
        let digest = isRight ? bytes.digest() : [UInt8]([1]).digest()
        let saved = try #require(await (try download(fixture, server, [.sha256: digest])).failure()?.resumeData?.data)
        let data = try ResumeData(saved)
        #expect(data.request.expectedDigests == [.sha256: digest])
        var configuration = TransferClient.Configuration()
        configuration.storageDirectory = fixture.directory.path + "/storage"
        let other = TransferClient(configuration)
        // A request without digests does not remove those of the data.
        let resumed = try other.resumeDownload(data, request: TransferRequest(server.url))
        if isRight {
            _ = try await resumed.value()
            expectSame(fixture.result, bytes)
        } else {
            #expect(await resumed.failure()?.code == .digestMismatch)
            #expect(fixture.downloads.isEmpty)
        }
    }

    @Test("a digest with a wrong number of bytes is an invalid request, and nothing is sent")
    func invalid() async throws {
        let server = try ScriptedServer { try $1.respond(200) }
        let fixture = try UploadFixture()
        let error = await (try download(fixture, server, [.sha256: [1, 2, 3]])).failure()
        #expect(error?.code == .invalidRequest && server.requests.isEmpty)
    }
}
