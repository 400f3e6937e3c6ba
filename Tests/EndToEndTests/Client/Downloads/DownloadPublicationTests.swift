import Foundation
import Glibc
import ResumableTransfer
import SystemCalls
import Testing

@Suite("Client: downloads that are killed after the rename, before their state is removed", .blocking)
struct DownloadPublicationTests {
    private let bytes = Payload.bytes(2_000_000)

    /// Completes a download, and returns the resume data of its last checkpoint, which is from before the rename. A
    /// process that is killed just after the rename leaves the same data and files.
    private func published(
        _ server: ScriptedServer
    ) async throws -> (fixture: UploadFixture, data: ResumeData, result: DownloadResult) {
        let saved = Monitor<[ResumeData]>([])
        let fixture = try UploadFixture { $0.onCheckpoint = { data in saved.withLock { $0.append(data) } } }
        let result = try await fixture.download(server.url).value()
        let data = try #require(saved.withLock { $0.last })
        #expect(data.position == 2_000_000 && data.total == 2_000_000)
        return (fixture, data, result)
    }

    @Test("a file that already has its final name is not downloaded again, and no request is sent")
    func published() async throws {
        let file = ScriptedFile(bytes: bytes)
        let server = try ScriptedServer { try file.serve($0, $1) }
        let (fixture, data, result) = try await published(server)
        let again = try await fixture.client.resumeDownload(data).value()
        #expect(again.path == result.path && again.size == 2_000_000 && again.status == 200)
        #expect(again.requests == 0 && again.received == 0 && server.requests.count == 1)
        expectSame(fixture.result, bytes)
        #expect(fixture.downloads == ["result.bin"])
    }

    @Test(
        "another file at the destination is not mistaken for the downloaded one",
        arguments: ["end", "longer", "copy", "gone", "link"])
    func others(kind: String) async throws {
        let file = ScriptedFile(bytes: bytes)
        let server = try ScriptedServer { try file.serve($0, $1) }
        let (fixture, data, _) = try await published(server)
        let path = fixture.destination
        let kept = fixture.directory.path + "/kept"
        switch kind {
        case "end":
            let handle = try FileHandle(forUpdating: URL(filePath: path))
            try handle.seek(toOffset: 1_999_000)
            try handle.write(contentsOf: Data(count: 100))
            try handle.close()
        case "longer":
            let handle = try FileHandle(forUpdating: URL(filePath: path))
            try handle.seekToEnd()
            try handle.write(contentsOf: Data([1]))
            try handle.close()
        case "copy":
            try FileManager.default.moveItem(atPath: path, toPath: kept)
            try FileManager.default.copyItem(atPath: kept, toPath: path)
        case "gone": try FileManager.default.moveItem(atPath: path, toPath: kept)
        default:
            try FileManager.default.moveItem(atPath: path, toPath: kept)
            #expect(symlink(kept, path) == 0)
        }
        let again = try await fixture.client.resumeDownload(data).value()
        #expect(again.requests == 1 && again.received == 2_000_000)
        expectSame(fixture.result, bytes)
    }
}
