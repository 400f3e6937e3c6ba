import Foundation
import Glibc
import HTTPSemantics
import ResumableTransfer
import ResumableUpload
import SystemCalls
import TestSupport
import Testing

@Suite("Client: paused and resumed downloads", .blocking)
struct DownloadResumptionTests {
    private let bytes = Payload.bytes(2_000_000)

    /// A server whose first response stops after `count` bytes, and whose connection stays open.
    private func server(_ count: Int = 900_000, _ fields: Fields = ["ETag": "\"one\""]) throws -> ScriptedServer {
        let file = ScriptedFile(bytes: bytes, fields: fields)
        let counter = Counter()
        return try ScriptedServer { request, reply in
            guard counter.next() == 1 else { return try file.serve(request, reply) }
            try reply.begin(200, fields.merging(["Content-Length": "\(file.bytes.count)"]))
            try reply.send([UInt8](file.bytes[..<count]))
            reply.stall()
        }
    }

    private func partial(_ fixture: UploadFixture) throws -> String {
        fixture.directory.path + "/downloads/" + (try #require(fixture.partials.first))
    }

    /// Resume data of a download that was paused after 900,000 bytes.
    private func paused(_ server: ScriptedServer, _ fixture: UploadFixture) async throws -> ResumeData {
        let download = try fixture.download(server.url)
        await download.awaitBytes(900_000)
        let data = try #require(await download.pause())
        #expect(await download.failure()?.code == .paused)
        return data
    }

    @Test("a pause returns resume data with which another client can continue the download once")
    func anotherClient() async throws {
        let server = try server()
        let fixture = try UploadFixture()
        let data = try await paused(server, fixture)
        #expect(data.kind == .download && data.position == 900_000 && data.total == 2_000_000)
        #expect(fixture.tickets.count == 1 && fixture.partials.count == 1)
        await fixture.client.shutDown()
        let again = try ResumeData(data.data)
        let client = TransferClient(fixture.client.configuration)
        let download = try client.resumeDownload(again)
        let history = await download.history()
        let result = try await download.value()
        expectSame(fixture.result, bytes)
        #expect(result.received == 1_100_000 && result.status == 206)
        #expect(history.resumptions == [900_000])
        guard case .started(2_000_000) = history.first else {
            Issue.record("\(String(describing: history.first))")
            return
        }
        #expect(server.requests.last?.fields["Range"] == "bytes=900000-")
        #expect(fixture.downloads == ["result.bin"] && fixture.tickets.isEmpty)
        #expect(throws: TransferError.self) { try client.resumeDownload(again) }
    }

    @Test("pausing the progress pauses the download")
    func pausedProgress() async throws {
        let server = try server()
        let fixture = try UploadFixture()
        let download = try fixture.download(server.url)
        let task = Task { await download.failure() }
        await download.awaitBytes(900_000)
        download.progress.pause()
        let error = await task.value
        #expect(error?.code == .paused && error?.resumeData != nil)
        #expect(download.resumeData == error?.resumeData)
    }

    @Test("a canceled task that awaits a download throws CancellationError, and the download can be resumed")
    func canceledTask() async throws {
        let server = try server()
        let fixture = try UploadFixture()
        let download = try fixture.download(server.url)
        let task = Task { try await download.value() }
        await download.awaitBytes(900_000)
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        let data = try #require(download.resumeData)
        _ = try fixture.client.resumeDownload(data)
    }

    @Test("after a crash a download continues at its checkpoint; bytes beyond the checkpoint are received again")
    func checkpoint() async throws {
        let server = try server()
        let fixture = try UploadFixture()
        let download = try fixture.download(server.url)
        var checkpoint: ResumeData?
        for await event in download.events() {
            if case .checkpoint(let data) = event { checkpoint = checkpoint ?? data }
            if case .received(900_000, _) = event { break }
        }
        _ = await download.pause()
        let data = try #require(checkpoint)
        #expect(data.position == 0)
        let result = try await TransferClient(fixture.client.configuration).resumeDownload(data).value()
        #expect(result.received == 2_000_000)
        expectSame(fixture.result, bytes)
    }

    @Test("of two transfers with one partial file, the second is refused and changes nothing")
    func busy() async throws {
        let server = try server()
        let fixture = try UploadFixture()
        let download = try fixture.download(server.url)
        await download.awaitBytes(900_000)
        let data = try #require(download.resumeData)
        #expect(await (try fixture.client.resumeDownload(data)).failure()?.code == .resumeDataUsed)
        await #expect(throws: TransferError.self) { try await fixture.client.discard(data) }
        let paused = try #require(await download.pause())
        _ = try await fixture.client.resumeDownload(paused).value()
        expectSame(fixture.result, bytes)
    }

    @Test("a download continues with another URI of the same representation")
    func otherRequest() async throws {
        let fixture = try UploadFixture()
        let data = try await paused(try server(), fixture)
        let file = ScriptedFile(bytes: bytes)
        let other = try ScriptedServer { try file.serve($0, $1) }
        let result = try await fixture.client.resumeDownload(data, request: TransferRequest(other.url + "/fresh"))
            .value()
        #expect(result.received == 1_100_000 && other.requests.first?.target == "/fresh")
        expectSame(fixture.result, bytes)
    }

    @Test("a partial file that is missing, changed or replaced is not continued", arguments: 0..<5)
    func strangePartial(kind: Int) async throws {
        let server = try server()
        let fixture = try UploadFixture()
        let data = try await paused(server, fixture)
        let path = try partial(fixture)
        let victim = fixture.directory.path + "/victim"
        try Data("precious".utf8).write(to: URL(filePath: victim))
        switch kind {
        case 0: #expect(unlink(path) == 0)
        case 1: #expect(truncate(path, 899_999) == 0)
        case 2:
            let file = try FileDescriptor.open(path, .readWrite)
            try file.write([0, 0], at: 899_000)
        case 3:
            #expect(unlink(path) == 0)
            #expect(symlinkFile(victim, path))
        default:
            #expect(unlink(path) == 0)
            #expect(makePipe(path))
        }
        let download = try fixture.client.resumeDownload(data)
        let history = await download.history()
        expectSame(fixture.result, bytes)
        #expect(history.resumptions == [0])
        #expect(server.requests.last?.fields.contains("Range") == false)
        #expect(try Data(contentsOf: URL(filePath: victim)) == Data("precious".utf8))
        // A file that the client did not create stays.
        #expect(fixture.partials.count == (kind >= 3 ? 1 : 0))
    }

    @Test("without a validator a pause returns no resume data and leaves no file")
    func notResumable() async throws {
        let server = try server(900_000, [:])
        let fixture = try UploadFixture()
        let download = try fixture.download(server.url)
        await download.awaitBytes(900_000)
        // The response has no validator, so the file has no name, and no later run can open it.
        #expect(fixture.downloads.isEmpty)
        #expect(download.resumeData == nil)
        #expect(await download.pause() == nil)
        #expect(fixture.downloads.isEmpty)
    }

    @Test("a cancellation removes the partial file if deletion was requested", arguments: [true, false])
    func cancellation(isDeleting: Bool) async throws {
        let server = try server()
        let fixture = try UploadFixture()
        let download = try fixture.download(server.url)
        await download.awaitBytes(900_000)
        await download.cancel(deletingPartialFile: isDeleting)
        let error = await download.failure()
        #expect(error?.code == .cancelled && error?.resumeData == nil)
        #expect(fixture.partials.count == (isDeleting ? 0 : 1))
        #expect(download.resumeData == nil)
    }

    @Test("discarding resume data removes the partial file")
    func discard() async throws {
        let fixture = try UploadFixture()
        let data = try await paused(try server(), fixture)
        try await fixture.client.discard(data)
        #expect(fixture.downloads.isEmpty && fixture.tickets.isEmpty)
        #expect(throws: TransferError.self) { try fixture.client.resumeDownload(data) }
    }

    @Test("resume data of a download cannot resume an upload, and stays valid")
    func wrongKind() async throws {
        let fixture = try UploadFixture()
        let data = try await paused(try server(), fixture)
        do throws(TransferError) {
            _ = try fixture.client.resumeUpload(data, from: DataSource(Data()))
            Issue.record("accepted")
        } catch {
            #expect(error.code == .resumeDataInvalid)
        }
        try await fixture.client.discard(data)
    }

    @Test("a pause before the first request leaves the resume data valid")
    func pauseAtOnce() async throws {
        let server = try server()
        let fixture = try UploadFixture()
        let data = try await paused(server, fixture)
        let again = try #require(await (try fixture.client.resumeDownload(data)).pause())
        #expect(server.requests.count == 1)
        #expect(again.position == 900_000)
        let other = try fixture.download(server.url + "/other")
        #expect(await other.pause() == nil)
        #expect(fixture.partials.count == 1)
        _ = try await fixture.client.resumeDownload(again).value()
        expectSame(fixture.result, bytes)
    }

    @Test("shutting the client down pauses running downloads, and ends those that start later")
    func shutDown() async throws {
        let server = try server()
        let fixture = try UploadFixture()
        let download = try fixture.download(server.url)
        await download.awaitBytes(900_000)
        await fixture.client.shutDown()
        let error = await download.failure()
        let data = try #require(error?.resumeData)
        let late = await (try fixture.client.resumeDownload(data)).failure()
        #expect(late?.code == .shutDown)
        _ = try await TransferClient(fixture.client.configuration).resumeDownload(try #require(late?.resumeData))
            .value()
        expectSame(fixture.result, bytes)
    }

    @Test("a download without a destination is continued in the storage directory")
    func temporary() async throws {
        let server = try server()
        let fixture = try UploadFixture()
        let download = fixture.client.download(TransferRequest(server.url), to: .temporary)
        await download.awaitBytes(900_000)
        let data = try #require(await download.pause())
        #expect(data.path == nil)
        #expect(fixture.tickets.count == 2)
        let result = try await fixture.client.resumeDownload(data).value()
        expectSame([UInt8](try Data(contentsOf: URL(filePath: result.path))), bytes)
        #expect(fixture.tickets.count == 1)
    }
}
