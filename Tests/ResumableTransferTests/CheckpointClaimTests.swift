import Foundation
import HTTPSemantics
import ResumableTransfer
import SystemCalls
import Testing

@Suite("Client: a checkpoint is used by one transfer at a time") struct CheckpointClaimTests {
    @Test(
        "a checkpoint that is passed to the caller cannot be resumed while its transfer runs",
        arguments: ["upload", "download"])
    func firstCheckpoint(kind: String) async throws {
        let codes = Monitor<[TransferError.Code?]>([])
        let file = MockFile(bytes: sampleBytes(100_000))
        let upload = MockUpload()
        let second = Monitor<TransferClient?>(nil)
        let fixture = try MockFixture {
            $0.onCheckpoint = { data in
                guard let client = second.withLock({ $0 }) else { return }
                let error = await transferError {
                    switch kind {
                    case "upload": _ = try await client.resumeUpload(data, from: DataSource(Data(file.bytes))).value()
                    default: _ = try await client.resumeDownload(data).value()
                    }
                }
                codes.withLock { $0.append(error?.code) }
            }
        } answer: { request in
            kind == "upload" ? try await upload.response(to: request) : file.response(to: request)
        }
        // The second client has the same storage directory, as another process of the same program has.
        var configuration = fixture.client.configuration
        configuration.onCheckpoint = nil
        second.withLock { [configuration] in
            $0 = TransferClient(configuration, transport: MockTransport { _ in MockResponse(.internalServerError) })
        }
        let request = TransferRequest("https://files.example/a", method: kind == "upload" ? .post : .get)
        if kind == "upload" {
            _ = try await fixture.client.upload(request, from: DataSource(Data(file.bytes))).value()
        } else {
            let path = fixture.directory.path + "/file"
            _ = try await fixture.client.download(request, to: .file(path)).value()
        }
        #expect(codes.withLock { !$0.isEmpty && $0.allSatisfy { $0 == .resumeDataUsed } }, "\(codes.withLock { $0 })")
        #expect(fixture.storedNames.isEmpty)
    }
}
