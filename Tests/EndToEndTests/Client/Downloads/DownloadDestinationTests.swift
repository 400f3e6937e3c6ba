import Foundation
import Glibc
import HTTPSemantics
import ResumableTransfer
import ResumableUpload
import SystemCalls
import TestSupport
import Testing

@Suite("Client: destinations of downloads", .blocking)
struct DownloadDestinationTests {
    private let file = ScriptedFile(bytes: Payload.bytes(3_000_000))

    private func error(_ destination: String, _ fixture: UploadFixture, _ uri: String) async -> TransferError? {
        await fixture.client.download(TransferRequest(uri), to: .file(destination)).failure()
    }

    @Test("a destination that is not a regular file is not replaced, and no request is sent", arguments: 0..<8)
    func unusable(kind: Int) async throws {
        let server = try ScriptedServer { try $1.respond(200, [:], "x") }
        let fixture = try UploadFixture()
        let root = fixture.directory.path
        var path = root + "/destination"
        switch kind {
        case 0: #expect(makePipe(path))
        case 1: #expect(mkdir(path, 0o700) == 0)
        case 2: path = "/dev/null"
        case 3: #expect(symlinkFile("/dev/null", path))
        case 4: path = root + "/missing/destination"
        case 5: path = root + "/"
        case 6: path = "/proc/self/destination"
        default:
            #expect(mkdir(root + "/directory", 0o700) == 0)
            #expect(symlinkFile(root + "/directory", path))
        }
        let before = try? FileDescriptor.open("/", .readOnly).status(at: path)
        let error = await error(path, fixture, server.url)
        #expect(error?.code == .destinationUnusable && error?.resumeData == nil)
        #expect(error?.message.contains(kind == 5 ? root : path) == true, "\(error?.message ?? "")")
        #expect(server.requests.isEmpty)
        #expect((try? FileDescriptor.open("/", .readOnly).status(at: path)) == before)
        #expect(!FileManager.default.fileExists(atPath: root + "/missing"))
        #expect(try FileManager.default.contentsOfDirectory(atPath: root).allSatisfy { !$0.hasSuffix(".part") })
    }

    @Test(
        "a directory without write permission is an unusable destination",
        .enabled(if: geteuid() != 0, "root may write to every directory"))
    func unwritable() async throws {
        let server = try ScriptedServer { try $1.respond(200, [:], "x") }
        let fixture = try UploadFixture()
        let directory = fixture.directory.path + "/locked"
        #expect(mkdir(directory, 0o500) == 0)
        #expect(await error(directory + "/a", fixture, server.url)?.code == .destinationUnusable)
        #expect(server.requests.isEmpty)
    }

    @Test("a symbolic link is replaced, and the file it points to is kept")
    func link() async throws {
        let file = file
        let server = try ScriptedServer { try file.serve($0, $1) }
        let fixture = try UploadFixture()
        let victim = fixture.directory.path + "/victim"
        try Data("precious".utf8).write(to: URL(filePath: victim))
        let download = try fixture.download(server.url)
        #expect(symlinkFile(victim, fixture.destination))
        _ = try await download.value()
        #expect(try Data(contentsOf: URL(filePath: victim)) == Data("precious".utf8))
        expectSame(fixture.result, file.bytes)
        let root = try FileDescriptor.open("/", .readOnly)
        #expect(try root.status(at: fixture.destination).isRegular)
    }

    @Test("a directory that is created at the destination during the download is kept, and so are the received bytes")
    func lateDirectory() async throws {
        let file = file
        let isHeld = Monitor(true)
        let server = try ScriptedServer { request, reply in
            if request.fields.contains("Range") { return try file.serve(request, reply) }
            try reply.begin(200, file.fields.merging(["Content-Length": "\(file.bytes.count)"]))
            try reply.send([UInt8](file.bytes[..<1_000_000]))
            isHeld.waitForever { $0 ? nil : () }
            try reply.send([UInt8](file.bytes[1_000_000...]))
        }
        let fixture = try UploadFixture()
        let download = try fixture.download(server.url)
        await download.awaitBytes(1)
        #expect(mkdir(fixture.destination, 0o700) == 0)
        isHeld.withLock { $0 = false }
        isHeld.notifyAll()
        let error = await download.failure()
        #expect(error?.code == .destinationUnusable && error?.message.contains(fixture.destination) == true)
        #expect(rmdir(fixture.destination) == 0)
        let result = try await fixture.client.resumeDownload(try #require(error?.resumeData)).value()
        #expect(result.status == 416 && result.received == 0)
        expectSame(fixture.result, file.bytes)
    }

    @Test("a relative path is resolved when the download is prepared")
    func relative() async throws {
        let fixture = try UploadFixture()
        let server = try ScriptedServer { try $1.respond(200, [:], "x") }
        let there = FileManager.default.currentDirectoryPath
        let up = String(repeating: "../", count: there.split(separator: "/").count)
        let path = fixture.directory.path + "/relative"
        let result = try await fixture.client.download(
            TransferRequest(server.url), to: .file(up + path.dropFirst())
        ).value()
        #expect(result.path.hasPrefix("/"))
        #expect(FileManager.default.contents(atPath: path) == Data("x".utf8))
    }

    @Test("a download to a destination whose name has the maximum length completes")
    func longName() async throws {
        let fixture = try UploadFixture()
        let server = try ScriptedServer { try $1.respond(200, [:], "x") }
        let path = fixture.directory.path + "/" + String(repeating: "n", count: 255)
        #expect(await error(path, fixture, server.url) == nil)
        #expect(FileManager.default.contents(atPath: path) == Data("x".utf8))
    }

    @Test(
        "a full disk ends the download with resume data, which can be used when there is space again",
        .enabled(if: SmallDisk.isPossible, SmallDisk.requirement))
    func fullDisk() async throws {
        let file = file
        let server = try ScriptedServer { try file.serve($0, $1) }
        let fixture = try UploadFixture()
        let root = fixture.directory.path + "/small"
        #expect(mkdir(root, 0o700) == 0)
        let disk = try SmallDisk(on: root, "size=2m")
        defer { disk.unmount() }
        let error = await error(root + "/a", fixture, server.url)
        #expect(error?.code == .destinationUnusable && error?.underlying as? Errno == .noSpace)
        let data = try #require(error?.resumeData)
        #expect(data.position > 0 && data.position <= 2 << 20)
        #expect(mount("tmpfs", root, "tmpfs", UInt(MS_REMOUNT), "size=8m") == 0)
        let result = try await fixture.client.resumeDownload(data).value()
        #expect(result.status == 206 && result.received < 3_000_000)
        expectSame([UInt8](try Data(contentsOf: URL(filePath: root + "/a"))), file.bytes)
    }

    @Test("a download without a destination fails if the storage directory cannot be used")
    func storage() async throws {
        let fixture = try UploadFixture { $0.storageDirectory = "/dev/null/storage" }
        let server = try ScriptedServer { try $1.respond(200, [:], "x") }
        let error = await fixture.client.download(TransferRequest(server.url), to: .temporary).failure()
        #expect(error?.code == .storageUnusable)
        #expect(server.requests.isEmpty)
    }
}
