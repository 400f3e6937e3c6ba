import Foundation
import FoundationNetworking
import HTTPSemantics
import ResumableURLSession
import ResumableUpload
import SystemCalls
import Testing

@testable import HTTPTransport
@testable import ResumableTransfer

/// Generated sequences of responses that follow no rule. Each transfer must end with a success or an error, with
/// consistent counts, and leave no file behind. A trap ends the test process; the argument of the running test is then
/// the seed of the input.
@Suite("Client: generated responses of a hostile server", .blocking(limit: .seconds(30 * 60)))
struct HostileResponseTests {
    private static let sequences = 40 * HostileResponses.factor

    /// A server that answers the requests in order with these responses; after them it responds with 404.
    private func server(_ exchanges: Monitor<[HostileResponses.Exchange]>) throws -> ScriptedServer {
        try ScriptedServer { request, reply in
            let next = exchanges.withLock { $0.isEmpty ? nil : $0.removeFirst() }
            guard let next else { return try reply.respond(404, ["Connection": "close"], "no more") }
            try reply.send(next.bytes)
            if next.isReset { reply.reset() } else { reply.drain() }
        }
    }

    /// `Progress` of Foundation on Linux is not thread-safe: `parent` may be given only after the transfer has ended.
    private func check(_ progress: Progress, _ source: String, parent: Progress? = nil) {
        let (completed, total) = (progress.completedUnitCount, progress.totalUnitCount)
        #expect(completed >= 0 && (total == -1 || completed <= total), "\(source): \(completed) of \(total)")
        #expect((0...1).contains(progress.fractionCompleted), "\(source): \(progress.fractionCompleted)")
        if let parent { #expect((0...1).contains(parent.fractionCompleted), "\(source): \(parent.fractionCompleted)") }
    }

    private static func configure(_ configuration: inout TransferClient.Configuration) {
        configuration.retry.delays = [.zero]
        configuration.retry.maxRetriesWithoutProgress = 2
        configuration.retry.maxRetryAfter = .zero
        configuration.interimResponseTimeout = .milliseconds(1)
        configuration.stallTimeout = .seconds(5)
    }

    @Test("a download ends, whatever the server responds", arguments: 1...5 as ClosedRange<UInt64>)
    func downloads(seed: UInt64) async throws {
        let exchanges = Monitor<[HostileResponses.Exchange]>([])
        let server = try server(exchanges)
        let fixture = try UploadFixture(Self.configure)
        for number in 0..<Self.sequences {
            let source = "seed \(seed), sequence \(number)"
            var responses = HostileResponses(seed: seed &* 1_000_003 &+ UInt64(number))
            let sequence = responses.download()
            exchanges.withLock { $0 = sequence }
            let download = try fixture.download(server.url + "/\(number)")
            let parent = Progress(totalUnitCount: 7)
            parent.addChild(download.progress, withPendingUnitCount: 7)
            for await event in download.events() {
                check(download.progress, source)
                guard case .received(let position, let total) = event else { continue }
                #expect(position >= 0 && total ?? 0 >= 0, "\(source)")
            }
            do throws(TransferError) {
                let result = try await download.outcome()
                #expect(fixture.result.count == Int(result.size), "\(source)")
                #expect(download.progress.fractionCompleted == 1 && parent.isFinished, "\(source)")
                #expect(fixture.downloads == ["result.bin"], "\(source): \(fixture.downloads)")
            } catch {
                #expect(!fixture.downloads.contains("result.bin"), "\(source)")
                if let data = error.resumeData { try await fixture.client.discard(data) }
                #expect(fixture.partials.isEmpty, "\(source): \(error) left \(fixture.partials)")
            }
            check(download.progress, source, parent: parent)
            try? FileManager.default.removeItem(atPath: fixture.directory.path + "/downloads")
        }
        #expect(fixture.tickets.isEmpty)
    }

    @Test("an upload ends, whatever the server responds", arguments: 1...5 as ClosedRange<UInt64>)
    func uploads(seed: UInt64) async throws {
        let exchanges = Monitor<[HostileResponses.Exchange]>([])
        let server = try server(exchanges)
        let fixture = try UploadFixture(Self.configure)
        for number in 0..<Self.sequences {
            let source = "seed \(seed), sequence \(number)"
            var responses = HostileResponses(seed: seed &* 1_000_003 &+ UInt64(number))
            let sequence = responses.upload()
            exchanges.withLock { $0 = sequence }
            let request = TransferRequest(server.url + "/\(number)", method: responses.chance(2) ? .put : .post)
            let upload = fixture.client.upload(request, from: DataSource(Data(HostileResponses.representation)))
            let parent = Progress(totalUnitCount: 7)
            parent.addChild(upload.progress, withPendingUnitCount: 7)
            for await event in upload.events() {
                check(upload.progress, source)
                guard case .progress(let sent, let acknowledged, _) = event else { continue }
                #expect((0...3000).contains(sent) && (0...3000).contains(acknowledged), "\(source)")
            }
            let failure = await upload.failure()
            check(upload.progress, source, parent: parent)
            if let data = failure?.resumeData {
                // The server no longer has the upload, so the client only deletes its own state.
                exchanges.withLock { $0 = [] }
                _ = try? await fixture.client.discard(data)
            }
        }
        #expect(fixture.tickets.isEmpty)
    }

    @Test("the tasks of a session end, whatever the server responds", arguments: 1...5 as ClosedRange<UInt64>)
    func tasks(seed: UInt64) async throws {
        let exchanges = Monitor<[HostileResponses.Exchange]>([])
        let server = try server(exchanges)
        let fixture = try SessionFixture()
        let recorder = SessionRecorder()
        let session = fixture.session(recorder) { Self.configure(&$0) }
        for number in 0..<Self.sequences {
            let source = "seed \(seed), sequence \(number)"
            var responses = HostileResponses(seed: seed &* 1_000_003 &+ UInt64(number))
            let isUpload = responses.chance(2)
            let sequence = isUpload ? responses.upload() : responses.download()
            exchanges.withLock { $0 = sequence }
            let request = try SessionFixture.request(server.url + "/\(number)", isUpload ? "PUT" : "GET")
            let task: URLSessionTask =
                isUpload
                ? session.uploadTask(with: request, from: Data(HostileResponses.representation))
                : session.downloadTask(with: request)
            let parent = Progress(totalUnitCount: 7)
            parent.addChild(task.progress, withPendingUnitCount: 7)
            task.resume()
            let isOver = recorder.receivesEvent(task) { event in
                if case .completed = event { true } else { false }
            }
            #expect(isOver, "\(source)")
            check(task.progress, source, parent: parent)
        }
        session.invalidateAndCancel()
    }

    @Test("the state machines end, whatever the server responds", arguments: 1...5 as ClosedRange<UInt64>)
    func machines(seed: UInt64) {
        for number in 0..<400 * HostileResponses.factor {
            var responses = HostileResponses(seed: seed &* 7_000_003 &+ UInt64(number))
            #expect(endsDownload(&responses), "seed \(seed), sequence \(number)")
            #expect(isEndOfUpload(&responses), "seed \(seed), sequence \(number)")
        }
    }

    private func endsDownload(_ responses: inout HostileResponses) -> Bool {
        var retry = RetryPolicy()
        retry.maxRetriesWithoutProgress = 3
        let known = DownloadRepresentation(
            entityTag: EntityTag(parsing: "\"one\""), total: responses.chance(2) ? 3000 : nil, mediaType: "text/html")
        var machine = DownloadMachine(
            responses.chance(2) ? known : nil, position: Int64(responses.number(0...3000)), retry: retry, random: { 0 })
        for _ in 0..<200 {
            switch machine.next() {
            case .wait: continue
            case .refreshCredentials: machine.credentialsRefreshed(isFresh: true)
            case .finished, .failed: return true
            case .send:
                machine.credentials.source = responses.chance(2) ? .refresh : nil
                if responses.chance(10) {
                    machine.interrupted(.connection)
                    continue
                }
                let (status, fields) = responses.head()
                let head = ClientResponseHead(status: status, fields: fields)
                var position = machine.position
                switch machine.reception(of: head) {
                case .resume(_, let end): position = min(end, machine.start + Int64(responses.number(0...3000)))
                case .replace: position = Int64(responses.number(0...3000))
                default: break
                }
                let ending: ContentEnding =
                    responses.chance(3) ? .cut(.connection) : responses.chance(20) ? .overrun : .complete
                machine.responded(head, position: position, ending: ending, now: 1_800_000_000)
            }
            if let total = machine.representation?.total, total < 0 { return false }
            if machine.position < 0 { return false }
        }
        return false
    }

    private func isEndOfUpload(_ responses: inout HostileResponses) -> Bool {
        var retry = RetryPolicy()
        retry.maxRetriesWithoutProgress = 3
        let length: Int64? = responses.chance(4) ? nil : 3000
        let intent = UploadIntent(
            dialect: .interop8, style: CreationStyle.allCases[responses.number(0...3)],
            method: responses.chance(2) ? .put : .post, length: length, maxRequestContentLength: nil,
            fields: Fields(),
            isOtherOriginAllowed: responses.chance(2))
        var machine = ClientUpload(intent, retry: retry, random: { 0 })
        let base = RequestURI("http://127.0.0.1:9/files/")
        func parsed(_ head: (status: Status, fields: Fields)) -> ClientResponseHead {
            let locations = head.fields.values("Location")
            return ClientResponseHead(
                status: head.status, fields: head.fields,
                location: locations.count == 1 ? base?.location(locations[0]) : nil)
        }
        for step in 0..<500 {
            let now = 1_800_000_000 + Int64(step)
            switch machine.next(now: now) {
            case .wait: continue
            case .refreshCredentials: machine.credentialsRefreshed(isFresh: true)
            case .finished, .failed: return true
            case .send:
                machine.credentials.source = responses.chance(2) ? .refresh : nil
                for _ in 0..<responses.number(0...2) {
                    _ = machine.interim(parsed(responses.uploadHead()), now: now)
                }
                let sent = Int64(responses.number(0...3000))
                if responses.chance(4) {
                    machine.interrupted(.connection, sent: sent, hasSourceEnded: responses.chance(2))
                } else {
                    machine.responded(
                        parsed(responses.uploadHead()), sent: sent, hasSourceEnded: responses.chance(2), problem: nil,
                        now: now)
                }
            }
            if machine.acknowledged < 0 { return false }
            if let length, machine.acknowledged > length { return false }
        }
        return false
    }
}
