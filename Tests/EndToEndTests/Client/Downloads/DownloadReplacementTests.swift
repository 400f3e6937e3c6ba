import Foundation
import HTTPSemantics
import SystemCalls
import TestSupport
import Testing

@testable import ResumableTransfer

/// The client keeps the received bytes until their replacement is complete.
@Suite("Client: responses that do not continue a download", .blocking)
struct DownloadReplacementTests {
    private let bytes = Payload.bytes(1_000_000)
    private let file: ScriptedFile

    init() {
        file = ScriptedFile(bytes: bytes, fields: ["ETag": "\"one\"", "Content-Type": "application/octet-stream"])
    }

    /// A server that cuts its first response after 400,000 bytes.
    /// - Parameter next: is called for each later request, with the number of the request, from 2.
    private func cuttingServer(
        _ next: @escaping @Sendable (_ number: Int, ReceivedRequest, Reply) throws -> Void
    ) throws -> ScriptedServer {
        let (file, counter) = (file, Counter())
        return try ScriptedServer { request, reply in
            let number = counter.next()
            if number == 1 { return try file.serve(request, reply, cut: 400_000) }
            try next(number, request, reply)
        }
    }

    /// A later version of the file.
    private var other: ScriptedFile {
        ScriptedFile(bytes: Payload.bytes(700_000, seed: 2), fields: file.fields.merging(["ETag": "\"two\""]))
    }

    /// A response to a request after the first.
    struct Answer: Sendable, CustomTestStringConvertible {
        var status: Int
        var fields: Fields
        var content = "<p>Please log in</p>"

        var testDescription: String { "\(status) \(fields.map { "\($0.name): \($0.value)" })" }
    }

    private static let otherAnswers: [Answer] = [
        Answer(status: 200, fields: ["Content-Type": "text/html"]),
        Answer(status: 200, fields: ["Content-Type": "application/octet-stream"]),
        Answer(status: 200, fields: [:], content: ""),
        // A captive portal whose page has validators of its own.
        Answer(status: 200, fields: ["Content-Type": "text/html", "ETag": "\"page\""]),
        Answer(
            status: 200,
            fields: ["Content-Type": "text/html", "ETag": "W/\"p\"", "Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT"]),
        Answer(status: 200, fields: ["ETag": "\"untyped\""]),
        Answer(status: 201, fields: ["ETag": "\"two\"", "Content-Type": "application/octet-stream"]),
        Answer(status: 202, fields: ["ETag": "\"two\"", "Content-Type": "application/octet-stream"]),
        Answer(status: 204, fields: ["ETag": "\"two\""], content: ""),
        Answer(status: 205, fields: ["Content-Length": "0"], content: ""),
        Answer(status: 300, fields: [:]), Answer(status: 302, fields: [:]),
        Answer(status: 304, fields: [:], content: ""),
    ]

    @Test(
        "RNG-27: a response that does not continue the download is an interruption, and every received byte is kept",
        arguments: otherAnswers)
    func otherAnswer(answer: Answer) async throws {
        let file = file
        let shouldSendOtherContent = Monitor(true)
        let server = try cuttingServer { _, request, reply in
            guard shouldSendOtherContent.withLock({ $0 }) else { return try file.serve(request, reply) }
            try reply.respond(answer.status, answer.fields, answer.content)
        }
        let fixture = try UploadFixture { $0.retry.maxRetriesWithoutProgress = 2 }
        let download = try fixture.download(server.url)
        let history = await download.history()
        let error = await download.failure()
        #expect(error?.code == .unexpectedResponse && error?.canRetry == true)
        #expect(error?.status?.rawValue == answer.status)
        #expect(error?.message.contains("\(answer.status)") == true, "\(error?.message ?? "")")
        #expect(history.interruptions.filter { $0.code == .unexpectedResponse }.count == 1)
        #expect(fixture.partials.count == 1)
        let data = try #require(error?.resumeData)
        #expect(data.position == 400_000)
        shouldSendOtherContent.withLock { $0 = false }
        let result = try await fixture.client.resumeDownload(data).value()
        #expect(result.status == 206 && result.received == 600_000)
        expectSame(fixture.result, bytes)
        #expect(fixture.downloads == ["result.bin"])
    }

    @Test("no received byte is lost if a captive portal answers some requests and later allows the client")
    func portal() async throws {
        let file = file
        let server = try cuttingServer { number, request, reply in
            switch number {
            case 2, 3: try reply.respond(200, ["Content-Type": "text/html"], "<p>Please log in</p>")
            default: try file.serve(request, reply)
            }
        }
        let fixture = try UploadFixture()
        let result = try await fixture.download(server.url).value()
        #expect(result.received == 1_000_000 && result.requests == 4)
        expectSame(fixture.result, bytes)
    }

    @Test("a first response without the file does not complete the download", arguments: [202, 204, 205, 206])
    func firstAnswer(status: Int) async throws {
        let server = try ScriptedServer { _, reply in
            try reply.respond(status, ["ETag": "\"a\""], status == 202 ? "later" : "")
        }
        let fixture = try UploadFixture { $0.retry.maxRetriesWithoutProgress = 1 }
        let error = await (try fixture.download(server.url)).failure()
        #expect(error?.code == (status == 206 ? .protocolViolation : .unexpectedResponse))
        #expect(error?.resumeData == nil && fixture.downloads.isEmpty)
        #expect(server.requests.count == (status == 206 ? 1 : 2))
    }

    // MARK: Another state of the same resource

    @Test("a cut replacement is resumed, by another client too; until it is complete, the replaced bytes are kept")
    func cutReplacement() async throws {
        let other = other
        let server = try cuttingServer { number, request, reply in
            switch number {
            case 2: try other.serve(request, reply, cut: 300_000)
            case 3: reply.stall()
            default: try other.serve(request, reply)
            }
        }
        let fixture = try UploadFixture()
        let download = try fixture.download(server.url)
        download.start()
        #expect(server.awaitRequests(3))
        let data = try #require(await download.pause())
        #expect(data.position == 300_000 && fixture.partials.count == 2)
        #expect(server.requests.last?.fields["If-Range"] == "\"two\"")
        let again = TransferClient(fixture.client.configuration)
        let result = try await again.resumeDownload(try ResumeData(data.data)).value()
        #expect(result.received == 400_000)
        expectSame(fixture.result, other.bytes)
        #expect(fixture.downloads == ["result.bin"])
    }

    @Test(
        "if the server has the earlier representation again, the kept bytes of that representation are used",
        arguments: [false, true])
    func back(isOtherProcess: Bool) async throws {
        let file = file
        let other = other
        let server = try cuttingServer { number, request, reply in
            switch number {
            case 2: try other.serve(request, reply, cut: 300_000)
            case 3 where isOtherProcess: reply.stall()
            default: try file.serve(request, reply)
            }
        }
        let fixture = try UploadFixture()
        let download = try fixture.download(server.url)
        if isOtherProcess {
            download.start()
            #expect(server.awaitRequests(3))
            let data = try #require(await download.pause())
            let again = TransferClient(fixture.client.configuration)
            _ = try await again.resumeDownload(try ResumeData(data.data)).value()
        } else {
            _ = try await download.value()
        }
        expectSame(fixture.result, bytes)
        #expect(server.requests.last?.fields["Range"] == "bytes=400000-")
        #expect(server.requests.last?.fields["If-Range"] == "\"one\"")
        #expect(fixture.downloads == ["result.bin"])
    }

    @Test("a replacement that cannot be resumed is dropped, and the earlier bytes are used")
    func weakReplacement() async throws {
        let file = file
        let server = try cuttingServer { number, request, reply in
            switch number {
            case 2:
                try reply.begin(
                    200, ["ETag": "W/\"w\"", "Content-Type": "application/octet-stream", "Content-Length": "500000"])
                try reply.send([UInt8](repeating: 7, count: 100_000))
                reply.reset()
            default: try file.serve(request, reply)
            }
        }
        let fixture = try UploadFixture()
        _ = try await fixture.download(server.url).value()
        expectSame(fixture.result, bytes)
        #expect(server.requests.map { $0.fields["Range"] ?? "" } == ["", "bytes=400000-", "bytes=400000-"])
        #expect(fixture.downloads == ["result.bin"])
    }

    @Test(
        "a replacement that does not match the server's digest is removed, and the earlier bytes are kept")
    func wrongReplacement() async throws {
        let server = try cuttingServer { _, _, reply in
            let fields: Fields = [
                "ETag": "\"two\"", "Content-Type": "application/octet-stream",
                "Repr-Digest": "sha-256=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:",
            ]
            try reply.respond(200, fields, "other")
        }
        let fixture = try UploadFixture()
        let error = await (try fixture.download(server.url)).failure()
        #expect(error?.code == .digestMismatch)
        #expect(error?.resumeData?.position == 400_000 && fixture.partials.count == 1)
    }

    @Test("canceling with deletion removes both partial files, and so does discarding the resume data")
    func cancellation() async throws {
        let other = other
        for isDiscarded in [false, true] {
            let server = try cuttingServer { number, request, reply in
                switch number {
                case 2: try other.serve(request, reply, cut: 300_000)
                default: reply.stall()
                }
            }
            let fixture = try UploadFixture()
            let download = try fixture.download(server.url)
            download.start()
            #expect(server.awaitRequests(3))
            if isDiscarded {
                let data = try #require(await download.pause())
                try await fixture.client.discard(data)
            } else {
                await download.cancel(deletingPartialFile: true)
            }
            #expect(fixture.downloads.isEmpty && fixture.tickets.isEmpty)
        }
    }

    // MARK: The command

    @Test("get ends with 75, reports the progress and how to start again, and the same command resumes")
    func command() throws {
        let file = file
        let shouldSendOtherContent = Monitor(true)
        let server = try cuttingServer { _, request, reply in
            guard shouldSendOtherContent.withLock({ $0 }) else { return try file.serve(request, reply) }
            try reply.respond(200, ["Content-Type": "text/html"], "<p>Please log in</p>")
        }
        let home = try CommandHome()
        let command = ["get", "--retries", "0", server.url + "/f", "-o", home.path + "/f"]
        try home.run(command).expect(75)
        let run = try home.run(command)
        try run.expect(75)
        #expect(run.errors.contains("200, text/html, 20 bytes, without a validator"), "\(run.errors)")
        #expect(run.errors.contains("--restart"), "\(run.errors)")
        shouldSendOtherContent.withLock { $0 = false }
        try home.run(command).expect(0)
        expectSame([UInt8](try Data(contentsOf: URL(filePath: home.path + "/f"))), bytes)
        #expect(server.requests.last?.fields["Range"] == "bytes=400000-")
    }
}
