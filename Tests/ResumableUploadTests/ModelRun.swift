import HTTPSemantics
import ResumableUpload
import TestSupport
import Testing

/// A client that sends random requests, and the rules that the server must follow for all of them.
struct ModelRun {
    let seed: UInt64
    private var random: SeededGenerator
    /// The complete content of the upload.
    let source: [UInt8]
    private(set) var server: ModelServer
    /// Whether the client sends only correct offsets, lengths and content. Its connections can break in any case.
    var isCorrect = false
    /// The largest offset that a response has reported.
    private var published: Int64 = 0

    init(seed: UInt64) {
        self.seed = seed
        var random = SeededGenerator(seed: seed)
        var source: [UInt8] = []
        for _ in 0..<Int.random(in: 0...60, using: &random) { source.append(.random(in: 0...255, using: &random)) }
        let limits =
            random.next().isMultiple(of: 4)
            ? UploadLimits(maxSize: Int64(source.count) + 5, maxAppendSize: 40) : UploadLimits()
        server = ModelServer(limits: limits)
        self.source = source
        self.random = random
    }

    var isDone: Bool { server.answer != nil }
    private var comment: Comment { "seed \(seed)" }

    private mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }

    mutating func create() {
        let request = request(offset: nil)
        check(request, isCreation: true) { $0.create(request) }
        // If the creation created no upload resource, a creation without content follows.
        guard !server.exists else { return }
        let dialect = Dialect.interop8
        let careful = ModelServer.Request(
            dialect: dialect, fields: dialect.request(complete: false), framing: .none, content: [])
        check(careful, isCreation: true) { $0.create(careful) }
        #expect(server.exists, comment)
    }

    mutating func step() {
        if chance(25) { retrieve() }
        if chance(40) { server.process() }
        let offset = Int64(server.stored.count)
        let isRight = isCorrect || chance(75)
        let request = request(offset: isRight ? offset : Int64.random(in: 0...70, using: &random))
        check(request, isCreation: false) { $0.append(request) }
    }

    // MARK: Requests

    private mutating func request(offset: Int64?) -> ModelServer.Request {
        let dialect = Dialect.allCases.randomElement(using: &random) ?? .rfc
        let start = Int(min(offset ?? 0, Int64(source.count)))
        let remaining = source.count - start
        var completes = chance(30)
        var size = completes && chance(80) ? remaining : Int.random(in: 0...remaining, using: &random)
        if isCorrect {
            if let limit = server.limits.maxAppendSize { size = min(size, Int(limit)) }
            completes = completes && size == remaining
        } else if chance(15) {
            size += Int.random(in: 1...20, using: &random)
        }
        var content = Array(source[start..<min(start + size, source.count)])
        while content.count < size { content.append(.random(in: 0...255, using: &random)) }
        let framing: MessageFraming = chance(40) ? .chunked : .length(Int64(size))
        var declared: Bool? = completes
        if !isCorrect, chance(10) { declared = nil }
        var length: Int64?
        if chance(40) { length = isCorrect || chance(80) ? Int64(source.count) : .random(in: 0...70, using: &random) }
        var fields = dialect.append(complete: declared, offset: offset, length: length)
        if !isCorrect, chance(4) { fields.remove("Content-Type") }
        var request = ModelServer.Request(dialect: dialect, fields: fields, framing: framing, content: content)
        request.piece = Int.random(in: 1...30, using: &random)
        if chance(25) {
            request.isInterrupted = true
            request.content = Array(content.prefix(Int.random(in: 0...size, using: &random)))
        }
        return request
    }

    // MARK: Rules

    private mutating func check(
        _ request: ModelServer.Request, isCreation: Bool, _ act: (inout ModelServer) -> Response?
    ) {
        let before = server
        let response = act(&server)
        let grown = Int64(server.stored.count - before.stored.count)
        let hasChanged = server.state != before.state || server.isInvalid != before.isInvalid
        #expect(server.stored.starts(with: before.stored), comment)

        // A completed upload does not change any more.
        if before.answer != nil || before.isProcessing {
            #expect(grown == 0 && server.length == before.length && !server.isInvalid, comment)
            #expect(server.answer == before.answer || before.isProcessing, comment)
        }
        if before.isInvalid { #expect(!hasChanged && response?.status == 404, comment) }
        if grown > 0, !isCreation {
            #expect(request.fields["Upload-Offset"] == "\(before.stored.count)", comment)
        }

        // An upload completes only if the request declares it complete, or, in versions 5 and 6, if the content reaches
        // the declared length.
        if server.isProcessing, !before.isProcessing {
            #expect(completes(request, isCreation: isCreation), comment)
            #expect(!request.isInterrupted, comment)
            #expect(server.length == Int64(server.stored.count), comment)
        }

        if request.dialect.lengthCompletes, response?.status.isSuccessful == true, !request.isInterrupted {
            #expect(server.isProcessing || isDone || server.length != Int64(server.stored.count), comment)
        }

        // All indications of the length agree, and the content does not exceed it.
        if let known = before.length { #expect(server.length == known, comment) }
        if let length = server.length { #expect(Int64(server.stored.count) <= length, comment) }
        #expect(Int64(server.stored.count) <= server.limits.effectiveMaxSize, comment)
        if hasChanged, request.dialect >= .interop5, let declared = request.fields["Upload-Length"] {
            #expect(server.length.map { "\($0)" } == declared, comment)
        }

        if let response { verify(response, to: request) }
        if isCorrect, !isDone, !before.isProcessing, server.exists, !request.isInterrupted {
            #expect(response?.status.isSuccessful ?? true, comment)
            #expect(grown == Int64(request.content.count), comment)
        }
    }

    /// Whether the request completes the upload; computed from its fields and the stored bytes, not by the tested code.
    private func completes(_ request: ModelServer.Request, isCreation: Bool) -> Bool {
        if request.dialect == .interop3 {
            let value = request.fields["Upload-Incomplete"]
            return value == "?0" || (value == nil && !isCreation)
        }
        if request.fields["Upload-Complete"] == "?1" { return true }
        return request.dialect.lengthCompletes && server.length == Int64(server.stored.count)
    }

    private mutating func verify(_ response: Response, to request: ModelServer.Request) {
        guard response.status != 200 else { return }
        let completeness = response.fields.completeness(in: request.dialect)
        #expect(completeness != nil, comment)
        if completeness == true { #expect(isDone && response.content.bytes == server.stored, comment) }
        if response.status.isClientError { #expect(completeness == false, comment) }
        observe(response)
        if response.status == 409 {
            #expect(response.fields["Upload-Offset"] == "\(server.stored.count)", comment)
        }
    }

    private mutating func retrieve() {
        let dialect = Dialect.allCases.randomElement(using: &random) ?? .rfc
        let response = server.retrieve(dialect)
        #expect((response.status == 404) == server.isInvalid, comment)
        guard response.status == 204 else { return }
        #expect(response.fields.completeness(in: dialect) == isDone, comment)
        // Clients of these versions report success when the offset equals the length.
        if dialect.lengthCompletes, server.length == Int64(server.stored.count) {
            #expect(isDone || server.isProcessing, comment)
        }
        #expect(response.fields["Upload-Length"] == server.length.map { "\($0)" }, comment)
        #expect(response.fields["Upload-Offset"] == "\(server.stored.count)", comment)
        observe(response)
    }

    /// Checks that reported offsets never decrease.
    private mutating func observe(_ response: Response) {
        guard let text = response.fields["Upload-Offset"], let offset = Int64(text) else { return }
        #expect(offset >= published, comment)
        published = offset
    }
}
