import Foundation
import HTTPSemantics
import ResumableTransfer
import ResumableUpload
import SystemCalls
import TestSupport
import Testing

@Suite("Client: downloads", .blocking)
struct DownloadTests {
    private let bytes = Payload.bytes(2_000_000)

    @Test("RNG-31: a download sends one request without Range and If-Range, and the file appears complete")
    func completeTransfer() async throws {
        let file = ScriptedFile(bytes: bytes)
        let server = try ScriptedServer { try file.serve($0, $1) }
        let fixture = try UploadFixture()
        let download = try fixture.download(server.url + "/a?key=1", ["X-Tenant": "7"])
        let history = await download.history()
        let result = try await download.value()
        #expect(result.status == 200 && result.size == 2_000_000 && result.received == 2_000_000)
        #expect(result.requests == 1 && result.path == fixture.destination)
        #expect(result.fields["ETag"] == "\"one\"")
        expectSame(fixture.result, bytes)
        #expect(fixture.downloads == ["result.bin"])
        let request = try #require(server.requests.first)
        #expect(request.method == "GET" && request.target == "/a?key=1" && request.fields["X-Tenant"] == "7")
        for name in ["Range", "If-Range", "Expect"] { #expect(!request.fields.contains(name)) }
        guard case .started(nil) = history.first, case .completed = history.last else {
            Issue.record("\(history)")
            return
        }
        #expect(
            history.contains { event in
                if case .received(2_000_000, 2_000_000) = event { true } else { false }
            })
        #expect(download.progress.completedUnitCount == 2_000_000 && download.progress.totalUnitCount == 2_000_000)
        #expect(download.resumeData == nil)
        #expect(fixture.tickets.isEmpty)
    }

    @Test("RNG-28 RNG-32: after every cut the next request continues after the last received byte")
    func cuts() async throws {
        let file = ScriptedFile(bytes: bytes)
        let server = try ScriptedServer { try file.serve($0, $1, cut: 300_000) }
        let fixture = try UploadFixture()
        let download = try fixture.download(server.url)
        let history = await download.history()
        let result = try await download.value()
        expectSame(fixture.result, bytes)
        #expect(result.status == 206 && result.received == 2_000_000 && result.requests == 7)
        let ranges = (1...6).map { "bytes=\($0 * 300_000)-" }
        #expect(server.requests.map { $0.fields["Range"] ?? "" } == [""] + ranges)
        #expect(server.requests.dropFirst().allSatisfy { $0.fields["If-Range"] == "\"one\"" })
        #expect(history.resumptions == (1...6).map { $0 * 300_000 })
        #expect(history.interruptions.count == 6)
        #expect(history.interruptions.allSatisfy { $0.code == .connectionLost && $0.canRetry })
        #expect(fixture.downloads == ["result.bin"])
    }

    @Test("RNG-27: a Last-Modified that is old enough is a validator, too")
    func date() async throws {
        let now = Int64(Date().timeIntervalSince1970)
        let file = ScriptedFile(
            bytes: bytes,
            fields: [
                "Last-Modified": HTTPDate(secondsSinceEpoch: now - 3600).serialized,
                "Date": HTTPDate(secondsSinceEpoch: now).serialized, "ETag": "W/\"one\"",
            ])
        let server = try ScriptedServer { try file.serve($0, $1, cut: 1_500_000) }
        let fixture = try UploadFixture()
        _ = try await fixture.download(server.url).value()
        expectSame(fixture.result, bytes)
        #expect(server.requests.last?.fields["If-Range"] == HTTPDate(secondsSinceEpoch: now - 3600).serialized)
    }

    @Test(
        "RNG-27 RNG-31: without a strong validator the complete file is requested again",
        arguments: [[:], ["ETag": "W/\"one\""]] as [Fields])
    func noValidator(fields: Fields) async throws {
        let file = ScriptedFile(bytes: bytes, fields: fields)
        let counter = Counter()
        let server = try ScriptedServer { try file.serve($0, $1, cut: counter.next() <= 2 ? 700_000 : nil) }
        let fixture = try UploadFixture()
        let download = try fixture.download(server.url)
        let history = await download.history()
        let result = try await download.value()
        expectSame(fixture.result, bytes)
        #expect(result.received == 3_400_000)
        #expect(server.requests.count == 3)
        #expect(server.requests.allSatisfy { !$0.fields.contains("Range") && !$0.fields.contains("If-Range") })
        #expect(history.resumptions == [0, 0])
        #expect(history.checkpoints.isEmpty)
    }

    @Test("a chunked response without its last chunk is an interruption; interim responses are reported")
    func chunked() async throws {
        let file = ScriptedFile(bytes: bytes)
        let server = try ScriptedServer { request, reply in
            if request.fields.contains("Range") { return try file.serve(request, reply) }
            try reply.interim(103, ["Link": "</x>"])
            try reply.interim(102)
            try reply.begin(200, ["ETag": "\"one\"", "Transfer-Encoding": "chunked"])
            for start in [0, 400_000] {
                try reply.send("61A80\r\n")
                try reply.send([UInt8](file.bytes[start..<start + 400_000]))
                try reply.send("\r\n")
            }
            reply.close()
        }
        let fixture = try UploadFixture()
        let download = try fixture.download(server.url)
        let history = await download.history()
        _ = try await download.value()
        expectSame(fixture.result, bytes)
        #expect(history.resumptions == [800_000])
        let interim = history.compactMap { event -> Status? in
            if case .informational(let status, _) = event { status } else { nil }
        }
        #expect(interim == [103, 102])
    }

    @Test("content without Content-Length ends with its last chunk or with the connection")
    func withoutLength() async throws {
        let bytes = bytes
        for isChunked in [true, false] {
            let server = try ScriptedServer { _, reply in
                if isChunked {
                    try reply.begin(200, ["Transfer-Encoding": "chunked"])
                    try reply.send(chunk: "hello, ")
                    try reply.send(chunk: "world")
                    try reply.send(chunk: "")
                } else {
                    try reply.begin(200, ["Connection": "close"])
                    try reply.send(bytes)
                    reply.close()
                }
            }
            let fixture = try UploadFixture()
            let result = try await fixture.download(server.url).value()
            expectSame(fixture.result, isChunked ? Array("hello, world".utf8) : bytes)
            #expect(result.size == (isChunked ? 12 : 2_000_000))
        }
    }

    @Test("a download of an empty file creates the file")
    func empty() async throws {
        let server = try ScriptedServer { try $1.respond(200, ["ETag": "\"one\""]) }
        let fixture = try UploadFixture()
        let result = try await fixture.download(server.url).value()
        #expect(result.size == 0)
        #expect(fixture.downloads == ["result.bin"])
        #expect(fixture.result.isEmpty)
    }

    @Test("content with a content coding is stored as received, and continued only with a strong entity tag")
    func contentCoding() async throws {
        let now = Int64(Date().timeIntervalSince1970)
        let dates: Fields = [
            "Last-Modified": HTTPDate(secondsSinceEpoch: now - 3600).serialized,
            "Date": HTTPDate(secondsSinceEpoch: now).serialized, "Content-Encoding": "gzip",
        ]
        for fields in [dates, dates.merging(["ETag": "\"coded\""])] {
            let file = ScriptedFile(bytes: bytes, fields: fields)
            let counter = Counter()
            let server = try ScriptedServer { try file.serve($0, $1, cut: counter.next() == 1 ? 700_000 : nil) }
            let fixture = try UploadFixture()
            _ = try await fixture.download(server.url).value()
            expectSame(fixture.result, bytes)
            #expect(server.requests.last?.fields["Range"] == (fields.contains("ETag") ? "bytes=700000-" : nil))
        }
    }

    @Test("a file without a destination is in the storage directory, and only its owner may read it")
    func temporary() async throws {
        let file = ScriptedFile(bytes: bytes)
        let server = try ScriptedServer { try file.serve($0, $1, cut: 1_200_000) }
        let fixture = try UploadFixture()
        let result = try await fixture.client.download(TransferRequest(server.url), to: .temporary).value()
        #expect(result.path.hasPrefix(fixture.directory.path + "/storage/"))
        #expect(fixture.tickets.count == 1)
        #expect(!result.path.hasSuffix(".part"))
        expectSame([UInt8](try Data(contentsOf: URL(filePath: result.path))), bytes)
        #expect(try FileDescriptor.open(result.path, .readOnly).status().permissions == 0o600)
    }

    @Test("a stalled response is an interruption")
    func stall() async throws {
        let file = ScriptedFile(bytes: bytes)
        let limit = Duration.milliseconds(400)
        let history = try await Pace.within(
            limit, until: { $0.resumptions == [500_000] },
            { pace -> [TransferEvent] in
                let counter = Counter()
                let server = try ScriptedServer { request, reply in
                    guard counter.next() == 1 else {
                        pace.step()
                        return try file.serve(request, reply)
                    }
                    try reply.begin(200, file.fields.merging(["Content-Length": "2000000"]))
                    try reply.send([UInt8](file.bytes[..<500_000]))
                    pace.step()
                    reply.stall()
                }
                let fixture = try UploadFixture { $0.stallTimeout = limit }
                let history = await (try fixture.download(server.url)).history()
                expectSame(fixture.result, bytes)
                return history
            })
        #expect(history.interruptions.map(\.code) == [.timedOut])
        #expect(history.resumptions == [500_000])
    }

    @Test(
        "RNG-32: Repr-Digest is verified over the complete file, with and without a cut", arguments: [true, false],
        [true, false])
    func digest(isRight: Bool, isCut: Bool) async throws {
        let digested = isRight ? bytes : Payload.bytes(10)
        for algorithm in ["sha-256", "sha-512"] {
            let value = digested.digestField(algorithm == "sha-256" ? .sha256 : .sha512)
            let file = ScriptedFile(bytes: bytes, fields: ["ETag": "\"one\"", "Repr-Digest": value])
            let counter = Counter()
            let server = try ScriptedServer { request, reply in
                try file.serve(request, reply, cut: isCut && counter.next() == 1 ? 900_000 : nil)
            }
            let fixture = try UploadFixture()
            let download = try fixture.download(server.url)
            let error = await download.failure()
            if isRight {
                #expect(error == nil)
                expectSame(fixture.result, bytes)
            } else {
                #expect(error?.code == .digestMismatch && error?.resumeData == nil)
                #expect(fixture.downloads.isEmpty)
                #expect(download.resumeData == nil)
            }
        }
    }

    @Test("an existing file is replaced at the end, and not before")
    func replacement() async throws {
        let file = ScriptedFile(bytes: bytes)
        let isHeld = Monitor(true)
        let server = try ScriptedServer { request, reply in
            try reply.begin(200, file.fields.merging(["Content-Length": "2000000"]))
            try reply.send([UInt8](file.bytes[..<1_000_000]))
            isHeld.waitForever { $0 ? nil : () }
            try reply.send([UInt8](file.bytes[1_000_000...]))
        }
        let fixture = try UploadFixture()
        let download = try fixture.download(server.url)
        try Data("old".utf8).write(to: URL(filePath: fixture.destination))
        await download.awaitBytes(1)
        #expect(fixture.result == Array("old".utf8))
        #expect(fixture.partials.count == 1)
        isHeld.withLock { $0 = false }
        isHeld.notifyAll()
        _ = try await download.value()
        expectSame(fixture.result, bytes)
        #expect(fixture.downloads == ["result.bin"])
    }
}
