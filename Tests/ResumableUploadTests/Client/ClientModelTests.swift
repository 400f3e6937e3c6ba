import HTTPSemantics
import ResumableUpload
import TestSupport
import Testing

/// Runs clients against a model of the server, over connections that break at random.
@Suite struct ClientModelTests {
    @Test(
        "CLI-05 CLI-06 CLI-08 CLI-10 CLI-12 CLI-16 OFF-11: all bytes arrive exactly once over any broken connections",
        arguments: 0..<UInt64(SeededGenerator.count(3000)))
    func gets(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let dialect = Dialect.allCases.randomElement(using: &random) ?? .rfc
        let source = (0..<Int.random(in: 0...80, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
        let least = Bool.random(using: &random) ? Int64.random(in: 1...8, using: &random) : nil
        var limits = UploadLimits()
        if Bool.random(using: &random) {
            limits = UploadLimits(
                maxSize: Int64(source.count) + 1, maxAppendSize: .random(in: 8...40, using: &random),
                minAppendSize: least)
        }
        let isLengthKnown = Bool.random(using: &random)
        var retry = RetryPolicy()
        retry.maxRetriesWithoutProgress = 1000
        let intent = UploadIntent(
            dialect: dialect, style: Bool.random(using: &random) ? .optimistic : .careful, method: .put,
            length: isLengthKnown ? Int64(source.count) : nil,
            maxRequestContentLength: Bool.random(using: &random) ? .random(in: 1...50, using: &random) : nil)
        var upload = ClientUpload(intent, retry: retry, random: { 0 })
        var link = ModelLink(server: ModelServer(limits: limits), source: source, random: random)

        for _ in 0..<4000 {
            switch upload.next(now: 0) {
            case .wait: continue
            case .refreshCredentials: upload.credentialsRefreshed(isFresh: true)
            case .send(let request):
                if request.kind == .append, isLengthKnown, request.fields["Upload-Complete"] == "?0",
                    case .range(_, let count) = request.content
                {
                    #expect(count >= limits.minAppendSize ?? 0, "seed \(seed)")
                }
                link.carry(request, of: &upload)
                // Another process continues the upload.
                if link.chance(10), let resumption = upload.resumption {
                    upload = ClientUpload(resuming: resumption, intent: intent, retry: retry, random: { 0 })
                }
            case .finished(let outcome):
                #expect(link.server.stored == source, "seed \(seed)")
                #expect(link.server.timesProcessed == 1, "seed \(seed)")
                if !outcome.isResponseLost { #expect(outcome.response.status == 201, "seed \(seed)") }
                return
            case .failed(let failure):
                Issue.record("seed \(seed): \(failure)")
                return
            }
        }
        Issue.record("seed \(seed): the upload does not end")
    }
}

/// A connection that carries the requests of one client to the model of a server and breaks at random.
struct ModelLink {
    var server: ModelServer
    let source: [UInt8]
    var random: SeededGenerator
    private var uri = 1

    init(server: ModelServer, source: [UInt8], random: SeededGenerator) {
        self.server = server
        self.source = source
        self.random = random
    }

    mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }

    mutating func carry(_ request: ClientRequest, of upload: inout ClientUpload) {
        if chance(15) { return upload.interrupted(.connection, sent: 0, hasSourceEnded: false) }
        let dialect = Dialect(announcedBy: request.fields) ?? .rfc
        switch request.kind {
        case .retrieve:
            if chance(60) { server.process() }
            let response = server.retrieve(dialect)
            if chance(15) { return upload.interrupted(.stall, sent: 0, hasSourceEnded: false) }
            upload.answer(response.status, response.fields)
        case .cancel, .discover, .download:
            upload.answer(204)
        case .create, .append:
            exchange(request, dialect, of: &upload)
        }
    }

    private mutating func exchange(_ request: ClientRequest, _ dialect: Dialect, of upload: inout ClientUpload) {
        var content: [UInt8] = []
        var framing = MessageFraming.length(0)
        var isAtEnd = false
        switch request.content {
        case .none, .empty: break
        case .range(let start, let count):
            content = Array(source[Int(start)..<Int(start + count)])
            framing = .length(count)
        case .remaining(let start, let most):
            content = Array(source[Int(start)...].prefix(most.map { Int($0) } ?? .max))
            isAtEnd = most.map { content.count < $0 } ?? true
            framing = .chunked
        }
        var incoming = ModelServer.Request(dialect: dialect, fields: request.fields, framing: framing, content: content)
        if request.kind == .create {
            // A repeated creation makes another upload; the earlier one is never used again.
            if !server.exists || !server.isProcessing, server.answer == nil {
                server = ModelServer(limits: server.limits)
                uri += 1
            }
            var trial = server
            _ = trial.create(incoming)
            if !content.isEmpty, trial.exists, chance(70) {
                var fields = dialect.interim()
                if !server.limits.isEmpty { fields.append("Upload-Limit", server.limits.fieldValue(for: dialect)) }
                let head = ClientResponseHead(
                    status: 104, fields: fields, location: ResolvedLocation(uri: "/u/\(uri)", relation: .sameOrigin))
                let reaction = upload.interim(head, now: 0)
                incoming.isInterrupted = true
                incoming.content = []
                guard reaction != .abort else {
                    _ = server.create(incoming)
                    return upload.interrupted(.connection, sent: 0, hasSourceEnded: false)
                }
                incoming.isInterrupted = false
                incoming.content = content
            }
        }
        let isKnown = request.kind == .append || upload.resumption != nil
        if isKnown, chance(30) {
            incoming.isInterrupted = true
            incoming.content = Array(content.prefix(Int.random(in: 0...content.count, using: &random)))
        }
        var response = request.kind == .create ? server.create(incoming) : server.append(incoming)
        if incoming.isInterrupted {
            return upload.interrupted(
                .connection, sent: Int64(Int.random(in: incoming.content.count...content.count, using: &random)),
                hasSourceEnded: false)
        }
        if response == nil {
            server.process()
            response = server.answer.map {
                Response(status: $0.status, fields: dialect.head(complete: true), content: $0.content)
            }
        }
        guard let response, !(isKnown && chance(20)) else {
            return upload.interrupted(.connection, sent: Int64(content.count), hasSourceEnded: isAtEnd)
        }
        upload.answer(
            response.status, response.fields, location: response.fields["Location"].map { _ in "/u/\(uri)" },
            sent: Int64(content.count), hasSourceEnded: isAtEnd)
    }
}

extension UploadLimits {
    var isEmpty: Bool { self == UploadLimits() }
}
