import Foundation
import HTTPSemantics
import ResumableTransfer
import ResumableUpload
import SystemCalls
import TestSupport
import Testing

@Suite("Client: interrupted uploads", .blocking)
struct UploadInterruptionTests {
    private let bytes = Payload.bytes(2_000_000)

    private func upload(
        to server: ScriptedServer, _ fixture: UploadFixture, method: HTTPSemantics.Method = .put
    ) -> Upload {
        fixture.client.upload(
            TransferRequest(server.url + "/target", method: method), from: DataSource(Data(bytes)))
    }

    @Test(
        "CLI-06 CLI-07 CLI-08 CLI-12: every append starts at the offset of HEAD, one request at a time"
    )
    func cuts() async throws {
        let model = ScriptedUpload()
        let counter = Counter()
        let busy = Monitor(0)
        let server = try ScriptedServer { request, reply in
            // No other request may arrive while content is received.
            #expect(busy.withLock { $0 } == 0)
            if ["PUT", "PATCH"].contains(request.method), counter.next() <= 6 {
                busy.withLock { $0 += 1 }
                if request.method == "PUT" { try reply.interim(104, model.announcement) }
                try model.receiveContent(reply, atMost: 100_000)
                busy.withLock { $0 -= 1 }
                return reply.reset()
            }
            try model.serve(request, reply)
        }
        let fixture = try UploadFixture()
        let upload = upload(to: server, fixture)
        let history = await upload.history()
        let result = try await upload.value()
        expectSame(model.inventory.bytes, bytes)
        #expect(result.acknowledged == 2_000_000)
        #expect(
            server.requests.map(\.method) == ["PUT"] + Array(repeating: ["HEAD", "PATCH"], count: 6).flatMap { $0 })
        var offsets: [Int64] = []
        var interruptions = 0
        for event in history {
            if case .resumed(let offset) = event { offsets.append(offset) }
            if case .interrupted(let error, _) = event {
                interruptions += 1
                #expect(error.code == .connectionLost && error.canRetry)
            }
        }
        #expect(offsets == (1...6).map { Int64($0) * 100_000 })
        #expect(interruptions == 6)
    }

    @Test("CLI-12: a 5xx without ?1 is an interruption, even in the response to HEAD", arguments: [500, 502, 503, 504])
    func serverError(status: Int) async throws {
        let model = ScriptedUpload()
        let counter = Counter()
        let server = try ScriptedServer { request, reply in
            switch counter.next() {
            case 1:
                try reply.interim(104, model.announcement)
                try model.receiveContent(reply, atMost: 500_000)
                try reply.respond(status, ["Upload-Complete": "?0"])
            case 2, 3: try reply.respond(status)
            default: try model.serve(request, reply)
            }
        }
        let fixture = try UploadFixture()
        _ = try await upload(to: server, fixture).value()
        expectSame(model.inventory.bytes, bytes)
        #expect(server.requests.map(\.method) == ["PUT", "HEAD", "HEAD", "HEAD", "PATCH"])
    }

    @Test("repeated failures of a server end the upload with resume data, which can be used later")
    func exhausted() async throws {
        let model = ScriptedUpload()
        let isBroken = Monitor(true)
        let server = try ScriptedServer { request, reply in
            guard isBroken.withLock({ $0 }) else { return try model.serve(request, reply) }
            if request.method == "PUT" {
                try reply.interim(104, model.announcement)
                try model.receiveContent(reply, atMost: 300_000)
                return reply.reset()
            }
            try reply.respond(503)
        }
        let fixture = try UploadFixture { $0.retry.maxRetriesWithoutProgress = 2 }
        let error = await upload(to: server, fixture).failure()
        #expect(error?.code == .serverUnavailable && error?.status == 503)
        #expect(error?.canRetry == true)
        let data = try #require(error?.resumeData)
        isBroken.withLock { $0 = false }
        let result = try await fixture.client.resumeUpload(data, from: DataSource(Data(bytes))).value()
        #expect(result.acknowledged == 2_000_000 && result.sent == 1_700_000)
        expectSame(model.inventory.bytes, bytes)
    }

    @Test("the client interrupts an upload that makes no progress for the stall timeout")
    func stall() async throws {
        let limit = Duration.milliseconds(400)
        let interruptions = try await Pace.within(
            limit, until: { $0 == [.timedOut] },
            { pace -> [TransferError.Code] in
                let model = ScriptedUpload()
                let counter = Counter()
                let server = try ScriptedServer { request, reply in
                    pace.step()
                    guard counter.next() == 1 else { return try model.serve(request, reply) }
                    try reply.interim(104, model.announcement)
                    try model.receiveContent(reply, atMost: 200_000)
                    pace.step()
                    // The kernels' buffers become full; then no more bytes are sent.
                    reply.stall()
                }
                let fixture = try UploadFixture { $0.stallTimeout = limit }
                let history = await upload(to: server, fixture).history()
                expectSame(model.inventory.bytes, bytes)
                return history.interruptions.map(\.code)
            })
        #expect(interruptions == [.timedOut])
    }

    @Test("CLI-32: the client continues at the offset in the problem document of a 409")
    func conflict() async throws {
        let model = ScriptedUpload()
        let counter = Counter()
        let server = try ScriptedServer { request, reply in
            if request.method == "PATCH", counter.next() == 1 {
                // Simulates bytes of the cut connection that arrived after the response to HEAD.
                model.inventory.append(Array(bytes[model.inventory.count..<700_000]))
                let problem = """
                    {"type":"https://iana.org/assignments/http-problem-types#mismatching-upload-offset",\
                    "title":"x","expected-offset":700000,"provided-offset":1}
                    """
                return try reply.respond(
                    409, ["Content-Type": "application/problem+json", "Upload-Complete": "?0"], problem)
            }
            if request.method == "PUT" {
                try reply.interim(104, model.announcement)
                try model.receiveContent(reply, atMost: 400_000)
                return reply.reset()
            }
            try model.serve(request, reply)
        }
        let fixture = try UploadFixture()
        _ = try await upload(to: server, fixture).value()
        expectSame(model.inventory.bytes, bytes)
        #expect(server.requests.filter { $0.method == "PATCH" }.last?.fields["Upload-Offset"] == "700000")
    }

    @Test("CLI-32: a server that refuses every offset ends the upload")
    func endlessConflict() async throws {
        let model = ScriptedUpload()
        let server = try ScriptedServer { request, reply in
            if request.method == "PATCH" { return try reply.respond(409, ["Upload-Complete": "?0"]) }
            if request.method == "PUT" {
                try reply.interim(104, model.announcement)
                try model.receiveContent(reply, atMost: 400_000)
                return reply.reset()
            }
            try model.serve(request, reply)
        }
        let fixture = try UploadFixture { $0.retry.maxRetriesWithoutProgress = 3 }
        let error = await upload(to: server, fixture).failure()
        #expect(error?.code == .offsetConflict)
        #expect(server.requests.count < 30)
    }

    @Test("CLI-33: an offset below an earlier one ends the upload, and the resource is deleted")
    func lostBytes() async throws {
        let model = ScriptedUpload()
        let server = try ScriptedServer { request, reply in
            if request.method == "PUT" {
                try reply.interim(104, model.announcement)
                try model.receiveContent(reply, atMost: 800_000)
                try reply.interim(104, Fields([ScriptedUpload.version, ("Upload-Offset", "800000")]))
                try model.receiveContent(reply, atMost: 50_000)
                model.inventory.drop(to: 700_000)
                return reply.reset()
            }
            try model.serve(request, reply)
        }
        let fixture = try UploadFixture()
        let error = await upload(to: server, fixture).failure()
        #expect(error?.code == .offsetLost)
        #expect(error?.resumeData == nil)
        #expect(!server.requests.contains { $0.method == "PATCH" })
    }

    @Test("CLI-38: an empty completing append retrieves a lost final response")
    func lostResponse() async throws {
        let model = ScriptedUpload()
        let counter = Counter()
        let server = try ScriptedServer { request, reply in
            switch counter.next() {
            case 1:
                try reply.interim(104, model.announcement)
                try model.receiveContent(reply)
                reply.reset()
            case 2: try reply.respond(204, model.state(complete: true))
            default:
                #expect(request.fields["Content-Length"] == "0" && request.fields["Upload-Offset"] == "2000000")
                try reply.respond(201, ["Upload-Complete": "?1", "Location": "/doc/1"], "the answer")
            }
        }
        let fixture = try UploadFixture()
        let result = try await upload(to: server, fixture).value()
        #expect(server.requests.map(\.method) == ["PUT", "HEAD", "PATCH"])
        #expect(result.status == 201 && result.content == Array("the answer".utf8))
        #expect(!result.isResponseLost && result.location == server.url + "/doc/1")
    }

    @Test("an upload whose resource is gone cannot be resumed", arguments: [404, 410])
    func gone(status: Int) async throws {
        let model = ScriptedUpload()
        let server = try ScriptedServer { request, reply in
            if request.method != "PUT" { return try reply.respond(status) }
            try reply.interim(104, model.announcement)
            try model.receiveContent(reply, atMost: 400_000)
            try reply.interim(104, Fields([ScriptedUpload.version, ("Upload-Offset", "400000")]))
            reply.reset()
        }
        let fixture = try UploadFixture()
        let error = await upload(to: server, fixture).failure()
        #expect(error?.code == .gone && error?.resumeData == nil && error?.status?.rawValue == status)
    }

    @Test("an upload that a server lost before it reported an offset is created again")
    func lostBeforeOffset() async throws {
        let (lost, model) = (ScriptedUpload(path: "/u/lost"), ScriptedUpload())
        let counter = Counter()
        let server = try ScriptedServer { request, reply in
            if request.target == lost.path { return try reply.respond(404) }
            guard counter.next() == 1 else { return try model.serve(request, reply) }
            try reply.interim(104, lost.announcement)
            try lost.receiveContent(reply, atMost: 400_000)
            reply.reset()
        }
        let fixture = try UploadFixture()
        let result = try await upload(to: server, fixture).value()
        #expect(server.requests.map(\.method) == ["PUT", "HEAD", "PUT"])
        #expect(result.status == 200 && model.inventory.count == 2_000_000)
    }

    @Test("a pause ends the wait between two attempts immediately")
    func pauseWhileWaiting() async throws {
        let model = ScriptedUpload()
        let server = try ScriptedServer { request, reply in
            if request.method != "PUT" { return try reply.respond(503, ["Retry-After": "300"]) }
            try reply.interim(104, model.announcement)
            try model.receiveContent(reply, atMost: 400_000)
            reply.reset()
        }
        let fixture = try UploadFixture { $0.retry.delays = [.zero, .seconds(200)] }
        let upload = upload(to: server, fixture)
        for await event in upload.events() {
            if case .interrupted(let error, _) = event, error.code == .serverUnavailable { break }
        }
        let start = ContinuousClock.now
        let data = await upload.pause()
        #expect(start.duration(to: .now) < EngineFixture.promptLimit)
        #expect(data?.kind == .upload)
    }

    @Test("an upload that is deleted ends, even if the deletion gets no response")
    func deletionWithoutAnswer() async throws {
        let model = ScriptedUpload()
        let server = try ScriptedServer { request, reply in
            if request.method == "DELETE" { return reply.reset() }
            try reply.interim(104, model.announcement)
            reply.stall()
        }
        let fixture = try UploadFixture()
        let upload = upload(to: server, fixture)
        for await event in upload.events() { if case .checkpoint = event { break } }
        await upload.cancel(deletingUpload: true)
        #expect(await upload.failure()?.code == .cancelled)
        #expect(server.requests.contains { $0.method == "DELETE" && $0.target == "/u/1" })
    }
}
