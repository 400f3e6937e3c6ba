import Foundation
import HTTPSemantics
import ResumableTransfer
import ResumableUpload
import SystemCalls
import TestSupport
import Testing

@Suite("Client: downloads of files that change, and wrong responses to downloads", .blocking)
struct DownloadChangeTests {
    private let bytes = Payload.bytes(1_000_000)
    private let file: ScriptedFile

    init() { file = ScriptedFile(bytes: bytes) }

    /// A server that cuts the first response, calls `body` for the second request and serves `file` from then on.
    private func server(
        cut: Int = 400_000, _ body: @escaping @Sendable (ReceivedRequest, Reply) throws -> Void
    ) throws -> ScriptedServer {
        let counter = Counter()
        let file = file
        return try ScriptedServer { request, reply in
            switch counter.next() {
            case 1: try file.serve(request, reply, cut: cut)
            case 2: try body(request, reply)
            default: try file.serve(request, reply)
            }
        }
    }

    @Test(
        "RNG-27 RNG-29: a response with another representation is received from its first byte, without another request"
    )
    func changed() async throws {
        let other = ScriptedFile(bytes: Payload.bytes(700_000, seed: 2), fields: ["ETag": "\"two\""])
        let server = try server { try other.serve($0, $1) }
        let fixture = try UploadFixture()
        let download = try fixture.download(server.url)
        let history = await download.history()
        let result = try await download.value()
        expectSame(fixture.result, other.bytes)
        #expect(result.size == 700_000 && result.status == 200)
        #expect(server.requests.map { $0.fields["Range"] ?? "" } == ["", "bytes=400000-"])
        #expect(history.resumptions == [0])
        // The partial file of the new representation has another name.
        #expect(Set(history.checkpoints.map(\.data)).count == history.checkpoints.count)
        #expect(fixture.downloads == ["result.bin"])
    }

    @Test("RNG-29: a server that does not support ranges sends the complete file, and the download is complete")
    func rangeless() async throws {
        let file = file
        let server = try server { _, reply in try reply.respond(200, file.fields, file.bytes) }
        let fixture = try UploadFixture()
        _ = try await fixture.download(server.url).value()
        expectSame(fixture.result, bytes)
        #expect(server.requests.count == 2)
    }

    @Test(
        "RNG-27 RNG-28: a part that does not match the request is dropped, and the complete file is requested",
        arguments: [
            ["Content-Range": "bytes 0-999999/1000000", "ETag": "\"one\""],
            ["Content-Range": "bytes 399999-999999/1000000", "ETag": "\"one\""],
            ["Content-Range": "bytes 400001-999999/1000000", "ETag": "\"one\""],
            ["Content-Range": "bytes 400000-999999/1000001", "ETag": "\"one\""],
            ["Content-Range": "bytes 400000-999999/1000000", "ETag": "\"two\""],
            ["Content-Range": "bytes 400000-999999/1000000", "ETag": "W/\"one\""],
            ["Content-Range": "bytes 400000-999999/1000000"],
            ["Content-Range": "bytes 400000-999998/1000000", "ETag": "\"one\""],
            ["Content-Range": "lines 400000-999999/1000000", "ETag": "\"one\""],
            ["ETag": "\"one\""],
            ["ETag": "\"one\"", "Content-Type": "multipart/byteranges; boundary=b"],
        ] as [Fields])
    func inconsistent(fields: Fields) async throws {
        let server = try server { _, reply in
            try reply.respond(206, fields, [UInt8](repeating: 0, count: 600_000))
        }
        let fixture = try UploadFixture()
        let download = try fixture.download(server.url)
        let history = await download.history()
        expectSame(fixture.result, bytes)
        #expect(server.requests.map { $0.fields["Range"] ?? "" } == ["", "bytes=400000-", ""])
        #expect(!server.requests[2].fields.contains("If-Range"))
        #expect(history.resumptions.last == 0)
    }

    @Test("RNG-28: content that is longer than its part is dropped, and the complete file is requested")
    func overrun() async throws {
        let file = file
        let server = try server { _, reply in
            try reply.begin(
                206,
                [
                    "ETag": "\"one\"", "Content-Range": "bytes 400000-400009/1000000", "Transfer-Encoding": "chunked",
                ])
            try reply.send(chunk: String(repeating: "x", count: 100))
            try reply.send(chunk: "")
        }
        let fixture = try UploadFixture()
        _ = try await fixture.download(server.url).value()
        expectSame(fixture.result, file.bytes)
        #expect(server.requests.last?.fields.contains("Range") == false)
    }

    @Test("RNG-32: a server that sends parts smaller than requested gets one request after the other")
    func smallParts() async throws {
        let file = file
        let server = try ScriptedServer { request, reply in
            guard let start = file.first(of: request) else { return try file.serve(request, reply, cut: 100_000) }
            let end = min(start + 150_000, file.bytes.count)
            try reply.respond(
                206, file.fields.merging(["Content-Range": "bytes \(start)-\(end - 1)/\(file.bytes.count)"]),
                [UInt8](file.bytes[start..<end]))
        }
        let fixture = try UploadFixture()
        let result = try await fixture.download(server.url).value()
        expectSame(fixture.result, bytes)
        #expect(result.requests == 7)
    }

    // MARK: 416

    /// Resume data of a download that lacks nothing but the end of the last chunk.
    private func completePartial(_ fixture: UploadFixture) async throws -> ResumeData {
        let file = file
        let server = try ScriptedServer { _, reply in
            try reply.begin(200, file.fields.merging(["Transfer-Encoding": "chunked"]))
            try reply.send(String(file.bytes.count, radix: 16) + "\r\n")
            try reply.send(file.bytes)
            reply.stall()
        }
        let download = try fixture.download(server.url)
        await download.awaitBytes(1_000_000)
        return try #require(await download.pause())
    }

    @Test(
        "RNG-30: 416 completes the download if size and validator match; without a validator, one byte is requested"
    )
    func unsatisfied() async throws {
        let file = file
        for hasTag in [true, false] {
            let fixture = try UploadFixture()
            let data = try await completePartial(fixture)
            let server = try ScriptedServer { request, reply in
                if file.first(of: request) == 1_000_000, !hasTag {
                    return try reply.respond(416, ["Content-Range": "bytes */1000000"], "no such part")
                }
                try file.serve(request, reply)
            }
            let download = try fixture.client.resumeDownload(data, request: TransferRequest(server.url))
            let history = await download.history()
            let result = try await download.value()
            expectSame(fixture.result, bytes)
            #expect(result.status == (hasTag ? 416 : 206) && result.received == (hasTag ? 0 : 1))
            #expect(
                server.requests.map { $0.fields["Range"] ?? "" }
                    == ["bytes=1000000-"] + (hasTag ? [] : ["bytes=999999-"]))
            #expect(history.resumptions == [hasTag ? 1_000_000 : 999_999])
        }
    }

    @Test(
        "RNG-30: after 416 with another representation or another size the download starts again",
        arguments: [
            ["Content-Range": "bytes */1000000", "ETag": "\"two\""], ["Content-Range": "bytes */5", "ETag": "\"one\""],
            ["ETag": "\"one\""],
        ] as [Fields])
    func otherUnsatisfied(fields: Fields) async throws {
        let other = ScriptedFile(bytes: Payload.bytes(300_000, seed: 3), fields: ["ETag": "\"two\""])
        let fixture = try UploadFixture()
        let data = try await completePartial(fixture)
        let server = try ScriptedServer { request, reply in
            if request.fields.contains("Range") { return try reply.respond(416, fields, "no") }
            try other.serve(request, reply)
        }
        _ = try await fixture.client.resumeDownload(data, request: TransferRequest(server.url)).value()
        expectSame(fixture.result, other.bytes)
        #expect(server.requests.count == 2)
        #expect(fixture.downloads == ["result.bin"])
    }
}
