import Foundation
import HTTPSemantics
import ResumableTransfer
import ResumableUpload
import SystemCalls
import TestSupport
import Testing

/// A source of unknown length that keeps only the bytes that are not yet acknowledged.
private final class StreamSource: UploadSource {
    let bytes: [UInt8]
    private let released = Monitor(Int64(0))

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    var length: Int64? { nil }
    var releasedUpTo: Int64 { released.withLock { $0 } }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(SourceError) -> Int {
        guard offset >= releasedUpTo else { throw .unavailable(at: offset) }
        let remaining = bytes[min(bytes.count, Int(offset))...].prefix(buffer.count)
        buffer.copyBytes(from: remaining)
        return remaining.count
    }

    func acknowledged(upTo offset: Int64) { released.withLock { $0 = max($0, offset) } }

    func release(upTo offset: Int64) { acknowledged(upTo: offset) }
}

/// Two MiB that change after the first MiB was read.
private struct ChangingSource: UploadSource {
    var length: Int64? { 2 << 20 }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(SourceError) -> Int {
        guard offset < 1 << 20 else { throw .changed }
        return buffer.count
    }

    func acknowledged(upTo offset: Int64) {}
}

@Suite("Client: sources of uploads", .blocking)
struct UploadSourceTests {
    private let bytes = Payload.bytes(1_000_000)

    @Test("CLI-25 CLI-29: a source of unknown length is sent in chunks, and is notified of the acknowledged offset")
    func stream() async throws {
        let model = ScriptedUpload()
        let counter = Counter()
        let server = try ScriptedServer { request, reply in
            guard request.method == "PUT", counter.next() == 1 else { return try model.serve(request, reply) }
            try reply.interim(104, model.announcement)
            try model.receiveContent(reply, atMost: 300_000)
            reply.reset()
        }
        let fixture = try UploadFixture()
        let source = StreamSource(bytes)
        let result = try await fixture.client.upload(
            TransferRequest(server.url + "/x", method: .put), from: source
        ).value()
        expectSame(model.inventory.bytes, bytes)
        #expect(result.status == 200)
        #expect(source.releasedUpTo >= 300_000)
        #expect(server.requests.first?.fields["Transfer-Encoding"] == "chunked")
    }

    @Test("a source that changes while its digest is computed ends the upload, and no request is sent")
    func changedMeanwhile() async throws {
        let server = try ScriptedServer { _, reply in try reply.respond(500) }
        let fixture = try UploadFixture { $0.shouldSendDigest = true }
        let error = await fixture.client.upload(
            TransferRequest(server.url + "/x", method: .put), from: ChangingSource()
        ).failure()
        #expect(error?.code == .sourceChanged && error?.resumeData == nil)
        #expect(server.requests.isEmpty)
    }

    @Test("CLI-27 CLI-29: a source that ends exactly at the end of an append completes the upload")
    func edge() async throws {
        let model = ScriptedUpload()
        let server = try ScriptedServer { try model.serve($0, $1) }
        let fixture = try UploadFixture { $0.maxRequestContentLength = 250_000 }
        let result = try await fixture.client.upload(
            TransferRequest(server.url + "/x", method: .put), from: StreamSource(bytes)
        ).value()
        expectSame(model.inventory.bytes, bytes)
        #expect(result.status == 200)
        #expect(server.requests.last?.fields["Upload-Complete"] == "?1")
    }

    @Test("CLI-09: if the source no longer has the bytes at the server's offset, the upload ends and is deleted")
    func notReplayable() async throws {
        let model = ScriptedUpload()
        let source = StreamSource(bytes)
        let server = try ScriptedServer { request, reply in
            if request.method == "PUT" {
                try reply.interim(104, model.announcement)
                try model.receiveContent(reply, atMost: 400_000)
                source.release(upTo: 400_000)
                model.inventory.drop(to: 200_000)
                return reply.reset()
            }
            try model.serve(request, reply)
        }
        let fixture = try UploadFixture()
        let error = await fixture.client.upload(
            TransferRequest(server.url + "/x", method: .put), from: source
        ).failure()
        #expect(error?.code == .sourceUnavailable)
        #expect(server.requests.contains { $0.method == "DELETE" && $0.target == "/u/1" })
        #expect(model.inventory.count == 200_000)
    }

    @Test(
        "a file that changes while it is sent ends the upload, and the upload is deleted",
        arguments: ["shrink", "touch"])
    func changing(kind: String) async throws {
        let model = ScriptedUpload()
        let fixture = try UploadFixture()
        let source = try fixture.file(Payload.bytes(20_000_000))
        let path = source.path
        let server = try ScriptedServer { request, reply in
            guard request.method == "PUT" else { return try model.serve(request, reply) }
            try reply.interim(104, model.announcement)
            try model.receiveContent(reply, atMost: 100_000)
            let writer = try FileDescriptor.open(path, [.readWrite])
            if kind == "shrink" {
                try writer.truncate(to: 50_000)
            } else {
                try writer.setModified(.init(seconds: 5, nanoseconds: 5))
            }
            try model.receiveContent(reply)
        }
        let error = await fixture.client.upload(
            TransferRequest(server.url + "/x", method: .put), from: source
        ).failure()
        #expect(error?.code == .sourceChanged && error?.resumeData == nil)
        #expect(server.requests.contains { $0.method == "DELETE" && $0.target == "/u/1" })
    }

    @Test("an upload from memory is resumed only with the same bytes")
    func memory() async throws {
        let model = ScriptedUpload()
        let server = try ScriptedServer { request, reply in
            guard request.method == "PUT" else { return try model.serve(request, reply) }
            try reply.interim(104, model.announcement)
            try model.receiveContent(reply, atMost: 100_000)
            reply.stall()
        }
        let fixture = try UploadFixture()
        let upload = fixture.client.upload(
            TransferRequest(server.url + "/x", method: .put), from: DataSource(Data(bytes)))
        for await event in upload.events() { if case .checkpoint = event { break } }
        let data = try #require(await upload.pause())
        #expect(data.path == nil && data.total == 1_000_000)
        var other = bytes
        other[500_000] ^= 1
        for source in [nil, DataSource(Data(other)), DataSource(Data(bytes.dropLast()))] {
            #expect(throws: TransferError.self) { try fixture.client.resumeUpload(data, from: source) }
        }
        _ = try await fixture.client.resumeUpload(data, from: DataSource(Data(bytes))).value()
        expectSame(model.inventory.bytes, bytes)
    }

    @Test("a pause of the upload stops the computation of the digest")
    func digestIsCancellable() async throws {
        let fixture = try UploadFixture { $0.shouldSendDigest = true }
        let path = fixture.directory.path + "/sparse"
        try FileDescriptor.open(path, [.readWrite, .create]).truncate(to: 64 << 30)
        let upload = fixture.client.upload(
            TransferRequest("http://127.0.0.1:1/x", method: .put), from: try FileSource(path: path))
        upload.start()
        try await Task.sleep(for: .milliseconds(50))
        let start = ContinuousClock.now
        #expect(await upload.pause() == nil)
        #expect(start.duration(to: .now) < EngineFixture.promptLimit)
    }

    @Test(
        "upload(file:to:) sends PUT to the URL of a file, and POST with the file's name to a collection",
        arguments: [true, false])
    func fileByPath(isURL: Bool) async throws {
        try await withServer { server in
            let fixture = try UploadFixture()
            let bytes = Payload.bytes(100_000)
            let source = try fixture.file(bytes, "fünf.bin")
            let url = server.url("/files/")
            let (put, post) =
                isURL
                ? (
                    try fixture.client.upload(
                        file: URL(filePath: source.path), to: try #require(URL(string: url + "name.bin"))),
                    try fixture.client.upload(file: URL(filePath: source.path), to: try #require(URL(string: url)))
                )
                : (
                    try fixture.client.upload(file: source.path, to: url + "name.bin"),
                    try fixture.client.upload(file: source.path, to: url)
                )
            #expect(put.request.method == .put && post.request.method == .post)
            _ = try await put.value()
            _ = try await post.value()
            expectSame(server.published("name.bin") ?? [], bytes)
            expectSame(server.published("fünf.bin") ?? [], bytes)
        }
    }

    @Test("a URL that is not a file URL is not a source, and a missing file is reported")
    func notAFile() throws {
        #expect(throws: TransferError.self) { try FileSource(url: URL(string: "https://example.com/a")!) }
        let error = #expect(throws: TransferError.self) {
            try TransferClient().upload(file: "/nonexistent/x", to: "http://127.0.0.1/")
        }
        #expect(error?.code == .noSuchSource && error?.underlying as? Errno == .noSuchFile)
    }
}
