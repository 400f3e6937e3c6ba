import Foundation
import Glibc
import HTTPSemantics
import ResumableTransfer
import SystemCalls
import TestSupport
import Testing

@Suite("Client: a store of transfers", .blocking)
struct StoreTests {
    private static let bytes = Payload.bytes(2_000_000)

    /// A server that stalls: a PUT after 300,000 received bytes, and the first GET after 900,000 sent bytes.
    private func server(_ upload: ScriptedUpload) throws -> ScriptedServer {
        let file = ScriptedFile(bytes: Self.bytes)
        let counter = Counter()
        return try ScriptedServer { request, reply in
            switch request.method {
            case "PUT":
                try reply.interim(104, upload.announcement)
                try upload.receiveContent(reply, atMost: 300_000)
                reply.stall()
            case "GET" where counter.next() == 1:
                try reply.begin(200, file.fields.merging(["Content-Length": "\(file.bytes.count)"]))
                try reply.send([UInt8](file.bytes[..<900_000]))
                reply.stall()
            case "GET": try file.serve(request, reply)
            default: try upload.serve(request, reply)
            }
        }
    }

    private func store(_ fixture: UploadFixture) throws -> TransferStore {
        try TransferStore(
            directory: fixture.directory.path + "/store", client: TransferClient(fixture.client.configuration)
        )
    }

    private func names(_ fixture: UploadFixture) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: fixture.directory.path + "/store")
    }

    private func awaitCheckpoint(_ transfer: any Transfer) async {
        for await event in transfer.events() {
            if case .checkpoint = event { return }
        }
    }

    private func code(_ body: () async throws -> Void) async -> TransferError.Code? {
        do {
            try await body()
            return nil
        } catch {
            return (error as? TransferError)?.code
        }
    }

    /// An entry whose upload was paused.
    private func paused(_ server: ScriptedServer, _ fixture: UploadFixture) async throws -> TransferStore.Entry {
        let store = try store(fixture)
        let upload = try await store.upload(
            TransferRequest(server.url + "/a.bin", method: .put), from: fixture.file(Self.bytes), as: "film",
            userInfo: ["title": "Film"])
        await awaitCheckpoint(upload)
        #expect(await upload.pause() != nil)
        return try #require(await store.entry("film"))
    }

    @Test("the store has an entry of a running upload, and another launch resumes the upload")
    func upload() async throws {
        let upload = ScriptedUpload()
        let server = try server(upload)
        let fixture = try UploadFixture()
        let first = try store(fixture)
        let request = TransferRequest(server.url + "/a.bin", method: .put)
        let source = try fixture.file(Self.bytes)
        let running = try await first.upload(request, from: source, as: "film", userInfo: ["title": "Film"])
        #expect(await first.entries().isEmpty)
        await awaitCheckpoint(running)
        let entry = try #require(await first.entry("film"))
        #expect(entry.isRunning && entry.process == getpid() && entry.userInfo == ["title": "Film"])
        #expect(
            entry.kind == .upload && entry.total == 2_000_000 && entry.path == fixture.directory.path + "/source.bin")
        let second = try store(fixture)
        #expect(await code { _ = try await second.upload(request, from: source, as: "film") } == .inUse)
        #expect(await code { _ = try await second.resume(entry) } == .inUse)
        await #expect(throws: TransferError.self) { try await second.discard(entry) }
        await first.client.shutDown()
        #expect(await second.entry("film")?.isRunning == false)
        #expect(fixture.tickets.isEmpty)
        #expect(try names(fixture) == ["film.state"])
        let resumed = try #require(try await second.resume(entry) as? Upload)
        let result = try await resumed.value()
        #expect(result.acknowledged == 2_000_000 && result.sent == 1_700_000)
        #expect(upload.inventory.count == 2_000_000)
        #expect(try names(fixture).isEmpty && fixture.tickets.isEmpty)
    }

    @Test("the store has an entry of a paused download, and the same call in another launch resumes the download")
    func download() async throws {
        let server = try server(ScriptedUpload())
        let fixture = try UploadFixture()
        let request = TransferRequest(server.url + "/d.bin")
        let path = fixture.directory.path + "/result.bin"
        let first = try store(fixture)
        let download = try await first.download(request, to: .file(path), as: "film")
        await download.awaitBytes(900_000)
        _ = await download.pause()
        let entry = try #require(await first.entry("film"))
        #expect(entry.kind == .download && entry.position == 900_000 && entry.path == path && !entry.isRunning)
        let second = try store(fixture)
        let result = try await second.download(request, to: .file(path), as: "film").value()
        #expect(result.received == 1_100_000)
        expectSame([UInt8](FileManager.default.contents(atPath: path) ?? Data()), Self.bytes)
        #expect(try names(fixture).isEmpty && fixture.tickets.isEmpty)
    }

    @Test("discard deletes the upload on the server, and cancel also removes the entry")
    func discard() async throws {
        let server = try server(ScriptedUpload())
        let fixture = try UploadFixture()
        let entry = try await paused(server, fixture)
        let store = try store(fixture)
        let isDeleted = try await store.discard(entry)
        #expect(isDeleted && server.requests.last?.method == "DELETE")
        #expect(try names(fixture).isEmpty)
        let again = try await paused(server, fixture)
        let resumed = try await store.resume(again)
        await resumed.cancel()
        #expect(server.requests.filter { $0.method == "DELETE" }.count == 2)
        #expect(try names(fixture).isEmpty)
    }

    @Test("an entry is kept if its transfer cannot start, and removed if the server no longer has the upload")
    func endings() async throws {
        let isGone = Monitor(false)
        let upload = ScriptedUpload()
        let server = try ScriptedServer { request, reply in
            if request.method == "HEAD", isGone.withLock({ $0 }) { return try reply.respond(404) }
            if request.method != "PUT" { return try upload.serve(request, reply) }
            try reply.interim(104, upload.announcement)
            try upload.receiveContent(reply, atMost: 300_000)
            reply.stall()
        }
        let fixture = try UploadFixture()
        let entry = try await paused(server, fixture)
        let stopped = try store(fixture)
        await stopped.client.shutDown()
        #expect(try await stopped.resume(entry).failure()?.code == .shutDown)
        let store = try store(fixture)
        let kept = try #require(await store.entry("film"))
        #expect(kept.resumeData?.position == entry.resumeData?.position && kept.userInfo == ["title": "Film"])
        try Data([1]).write(to: URL(filePath: fixture.directory.path + "/source.bin"))
        #expect(await code { _ = try await store.resume(kept) } == .sourceChanged)
        #expect(await store.entry("film") != nil)
        isGone.withLock { $0 = true }
        let source = DataSource(Data(Self.bytes))
        #expect(try await store.resume(kept, from: source).failure()?.code == .gone)
        #expect(try names(fixture).isEmpty)
    }

    @Test("a rejected upload has no entry")
    func rejected() async throws {
        let upload = ScriptedUpload()
        let server = try ScriptedServer { request, reply in
            try reply.interim(104, upload.announcement)
            try upload.receiveContent(reply)
            try reply.respond(422, ["Upload-Complete": "?1"])
        }
        let fixture = try UploadFixture()
        let transfer = try await store(fixture).upload(
            TransferRequest(server.url + "/a", method: .put), from: fixture.file(Self.bytes), as: "film")
        #expect(await transfer.failure()?.status == 422)
        #expect(try names(fixture).isEmpty)
    }

    @Test("a checkpoint that cannot be saved is reported, and the upload succeeds")
    func unsaved() async throws {
        let upload = ScriptedUpload()
        let server = try ScriptedServer { request, reply in try upload.serve(request, reply) }
        let fixture = try UploadFixture()
        var store = try store(fixture)
        let failures = Monitor<[String]>([])
        store.onSaveFailure = { name, error in failures.withLock { $0.append("\(name) \(error.code.rawValue)") } }
        mkdir(fixture.directory.path + "/store/.film.state.tmp", 0o700)
        let transfer = try await store.upload(
            TransferRequest(server.url + "/a", method: .put), from: fixture.file(Self.bytes), as: "film")
        let result = try await transfer.value()
        #expect(result.status == 200)
        #expect(failures.withLock { Set($0) } == ["film storage-unusable"])
        #expect(try names(fixture) == [".film.state.tmp"])
    }
}
