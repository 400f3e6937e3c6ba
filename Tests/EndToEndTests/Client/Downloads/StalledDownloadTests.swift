import ConformanceKit
import Foundation
import Glibc
import HTTPSemantics
import ResumableTransfer
import SystemCalls
import TestSupport
import Testing

/// The client records the received bytes after some time, even if no more bytes arrive.
@Suite("Client: downloads that are killed while nothing arrives", .blocking)
struct StalledDownloadTests {
    private let bytes = Payload.bytes(3_000_000)

    /// A server whose first response stops after a million bytes, and whose connection then stays open or is closed.
    private func server(staysOpen: Bool) throws -> ScriptedServer {
        let file = ScriptedFile(bytes: bytes)
        let counter = Counter()
        return try ScriptedServer { request, reply in
            switch counter.next() {
            case 1:
                try reply.begin(200, file.fields.merging(["Content-Length": "\(file.bytes.count)"]))
                try reply.send([UInt8](file.bytes[..<1_000_000]))
                if staysOpen { reply.stall() } else { reply.close() }
            // After the close the client sends a second request. It gets no response, so again nothing arrives.
            case 2 where !staysOpen: reply.stall()
            default: try file.serve(request, reply)
            }
        }
    }

    @Test(
        "if get is killed after its state contains the last received byte, the same command continues after that byte",
        arguments: [true, false])
    func command(staysOpen: Bool) throws {
        let server = try server(staysOpen: staysOpen)
        let home = try CommandHome()
        let command = ["get", "--json", server.url + "/f", "-o", home.path + "/f"]
        let run = try home.start(command)
        #expect(try eventually { try home.run("status", "--json").objects().first?.number("received") == 1_000_000 })
        run.process.kill(SIGKILL)
        _ = try run.process.awaitEnding()
        try home.run(command).expect(0)
        #expect(server.requests.last?.fields["Range"] == "bytes=1000000-")
        expectSame([UInt8](try Data(contentsOf: URL(filePath: home.path + "/f"))), bytes)
    }

    @Test(
        "the library saves a checkpoint at the last received byte, and reports it as an event",
        arguments: [true, false])
    func checkpoints(staysOpen: Bool) async throws {
        let server = try server(staysOpen: staysOpen)
        let saved = Monitor<[ResumeData]>([])
        let fixture = try UploadFixture { $0.onCheckpoint = { data in saved.withLock { $0.append(data) } } }
        let download = try fixture.download(server.url)
        for await event in download.events() {
            if case .checkpoint(let data) = event, data.position == 1_000_000 { break }
        }
        #expect(saved.withLock { $0.last?.position } == 1_000_000)
        #expect(saved.withLock { $0.count } < 12)
        await download.cancel(deletingPartialFile: true)
    }

    @Test("each position is reported once")
    func onePerPosition() async throws {
        let server = try server(staysOpen: true)
        let fixture = try UploadFixture { $0.stallTimeout = .seconds(2) }
        let download = try fixture.download(server.url)
        var positions: [Int64] = []
        for await event in download.events() {
            if case .received(let position, _) = event { positions.append(position) }
            if case .interrupted = event { break }
        }
        #expect(Set(positions).count == positions.count, "\(positions)")
        await download.cancel(deletingPartialFile: true)
    }
}
