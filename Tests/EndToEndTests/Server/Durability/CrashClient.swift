import ConformanceKit
import TestSupport

/// A client of a server that is killed from time to time. It uploads file after file in all dialects and in different
/// ways, records every offset that the server reports, and continues after each crash.
struct CrashClient {
    private let number: Int
    private let world: CrashWorld
    private var random: SeededGenerator
    private var files = 0
    /// Whether the client removes each file after verifying it, so that the disk does not fill up.
    private let removes: Bool

    /// The current upload of the client.
    private struct Upload {
        var name: String
        /// The part of ``BytePool`` that is the upload's content.
        var content: Range<Int>
        var dialect: Interop
        var method: String
        var beginning: Beginning
        var sendsLength: Bool
        var shouldSendDigest: Bool
        var location: String?
        /// The highest offset that the server has reported.
        var reported = 0
        /// The end of the bytes that were sent.
        var sent = 0
        var isComplete = false
        /// Whether a cancellation was sent; its response may have been lost.
        var isCancelled = false
        /// A time before the creation was sent.
        var begunAt: ContinuousClock.Instant?
        /// Whether the upload replaces the file of the same name.
        var isReplacement = false

        /// Whether the last retrieval of the offset also returned the length.
        var isLengthKnown = false

        var bytes: ArraySlice<UInt8> { BytePool.bytes[content] }
        /// Whether content that reaches the known length completes the upload, even in a request that is not declared
        /// as the last one.
        var lengthCompletes: Bool { [.v5, .v6].contains(dialect) }
    }

    private enum Beginning: CaseIterable {
        /// The creation has the complete content.
        case complete
        case part
        case empty
        /// A plain upload, without an upload resource.
        case plain
    }

    init(_ number: Int, world: CrashWorld, random: SeededGenerator, removes: Bool = false) {
        self.number = number
        self.removes = removes
        self.world = world
        self.random = random
    }

    /// Uploads files until the test ends the history.
    mutating func run() throws {
        while !world.isEnding { try uploadOne() }
    }

    private mutating func uploadOne() throws {
        var upload = makeUpload()
        var isFirst = true
        while !upload.isComplete {
            let life = world.awaitServer()
            if !isFirst { world.countResumption() }
            isFirst = false
            do {
                try advance(&upload)
            } catch is UploadInUse {
                continue
            } catch {
                if let begunAt = upload.begunAt, ContinuousClock.now - begunAt >= world.lifetime {
                    return world.countUnfinished()
                }
                // Only a crash may close a connection.
                guard world.hasCrashed(since: life) else { throw failure("\(error)", upload) }
                if error is TestFailure { throw error }
            }
        }
        if upload.isCancelled { return world.countCanceled() }
        try world.require(upload.name, upload.content)
        world.countCompleted()
        if removes && !upload.isReplacement { try remove(upload.name) }
    }

    private func remove(_ name: String) throws {
        while true {
            let life = world.awaitServer()
            do {
                let response = try connect().exchange(Request("DELETE", "/files/\(name)"), within: .seconds(60))
                // The first of two tries may have removed the file: its response can be lost.
                guard [204, 404].contains(response.status) else {
                    throw TestFailure("DELETE of \(name): \(response)")
                }
                return world.forget(name)
            } catch {
                if error is TestFailure { throw error }
                guard world.hasCrashed(since: life) else { throw error }
            }
        }
    }

    private mutating func makeUpload() -> Upload {
        let count: Int
        switch Int.random(in: 0..<10, using: &random) {
        case 0: count = Int.random(in: 0...3, using: &random)
        case 1..<7: count = Int.random(in: 1...1_000_000, using: &random)
        default: count = Int.random(in: 1_000_000...20_000_000, using: &random)
        }
        let start = Int.random(in: 0...BytePool.bytes.count - count, using: &random)
        var upload = Upload(
            name: "", content: start..<start + count, dialect: Interop.allCases.randomElement(using: &random) ?? .v8,
            method: Bool.random(using: &random) ? "PUT" : "POST",
            beginning: random.oneIn(12)
                ? .plain : [.complete, .complete, .part, .empty].randomElement(using: &random) ?? .part,
            sendsLength: Bool.random(using: &random), shouldSendDigest: random.oneIn(4))
        upload.isReplacement = upload.method == "PUT" && random.oneIn(4)
        rename(&upload)
        return upload
    }

    /// Gives each new creation a name of its own, so that a file that is published twice is noticed; a replacement
    /// keeps its name.
    private mutating func rename(_ upload: inout Upload) {
        files += 1
        upload.name = upload.isReplacement ? "client\(number).bin" : "client\(number)-\(files).bin"
        world.expect(upload.name, upload.content)
    }

    private func failure(_ what: String, _ upload: Upload) -> TestFailure {
        TestFailure(
            "client \(number), \(upload.name), \(upload.dialect) \(upload.method) \(upload.beginning), "
                + "reported \(upload.reported), sent \(upload.sent) of \(upload.content.count): \(what)")
    }

    // MARK: - One step

    private mutating func advance(_ upload: inout Upload) throws {
        guard let location = upload.location else { return try create(&upload) }
        let offset = try retrieve(&upload, location)
        if upload.isComplete { return }
        if upload.isCancelled || random.oneIn(40) { return try cancel(&upload, location) }
        // Sometimes the client sends an append that is refused. The response has the offset, too.
        if random.oneIn(6) { try appendAtWrongOffset(&upload, location, offset) }
        try append(&upload, location, at: offset)
    }

    private func connect() throws -> RawConnection { try RawConnection(port: world.port) }

    /// Another server still holds the upload, so the client tries again.
    private struct UploadInUse: Error {}

    private func requireAvailable(_ response: Response, to method: String) throws {
        if SharedStorage.nodes > 1, response.isOfUploadInUse(to: method) { throw UploadInUse() }
    }

    private func exchange(_ request: Request) throws -> Response {
        let response = try connect().exchange(request)
        try requireAvailable(response, to: request.method)
        return response
    }

    private mutating func create(_ upload: inout Upload) throws {
        if upload.sent > 0 || upload.reported > 0 {
            // The client never got the location of that upload, so it starts another one.
            world.countUnfinished()
            rename(&upload)
            upload.sent = 0
            upload.reported = 0
        }
        upload.sent = 1
        upload.begunAt = .now
        let count = upload.content.count
        var request: Request
        let part: Int
        switch upload.beginning {
        case .complete: part = count
        case .part: part = Int.random(in: 0...count, using: &random)
        case .empty: part = 0
        case .plain: part = count
        }
        let completes = upload.beginning == .complete
        let reachesLength = upload.lengthCompletes && upload.sendsLength && part == count
        request = .creation(
            upload.beginning == .plain ? nil : upload.dialect, upload.method,
            upload.method == "PUT" ? "/files/\(upload.name)" : "/files/",
            complete: upload.beginning == .plain ? nil : completes,
            length: upload.sendsLength && upload.beginning != .plain ? count : nil, .none)
        if upload.method == "POST" {
            request = request.with("Content-Disposition", "attachment; filename=\"\(upload.name)\"")
        }
        if upload.shouldSendDigest { request = request.with("Repr-Digest", digest(upload.bytes)) }
        let connection = try connect()
        try send(request, upload.bytes.prefix(part), on: connection, &upload, from: 0)
        let response = try finish(connection, request.method, &upload)
        guard response.isSuccessful else { throw failure("creation: \(response)", upload) }
        if upload.beginning == .plain {
            upload.isComplete = true
        } else {
            try checkCompleteness(response, &upload, expected: completes || reachesLength)
            if upload.location == nil && !upload.isComplete { throw failure("no location: \(response)", upload) }
        }
    }

    /// - Returns: the offset.
    private func retrieve(_ upload: inout Upload, _ location: String) throws -> Int {
        let response = try exchange(.retrieval(upload.dialect, location))
        if upload.isCancelled && response.status == 404 {
            upload.isComplete = true
            return 0
        }
        guard response.status == 204, let offset = response.offset else {
            throw failure("the upload is lost: \(response)", upload)
        }
        try checkAndRecord(response, &upload)
        upload.isLengthKnown = response.length != nil
        // A client of version 5 or 6 reports success at this offset.
        if upload.lengthCompletes, upload.isLengthKnown, offset == upload.content.count,
            !response.states(complete: true, in: upload.dialect)
        {
            throw failure("not complete at its length: \(response)", upload)
        }
        if response.states(complete: true, in: upload.dialect) {
            guard offset == upload.content.count else { throw failure("complete at \(offset)", upload) }
            upload.isComplete = true
            upload.isCancelled = false
        }
        return Int(offset)
    }

    /// Cancels the upload. From now on the client expects that it stays canceled, even after a crash.
    private func cancel(_ upload: inout Upload, _ location: String) throws {
        upload.isCancelled = true
        let response = try exchange(.cancellation(upload.dialect, location))
        guard response.status == 204 else { throw failure("cancellation: \(response)", upload) }
        _ = try retrieve(&upload, location)
        guard upload.isComplete else { throw failure("the canceled upload exists again", upload) }
    }

    private mutating func appendAtWrongOffset(_ upload: inout Upload, _ location: String, _ offset: Int) throws {
        let response = try exchange(
            .append(upload.dialect, location, at: offset + 1, complete: false, .bytes([1, 2, 3])))
        guard response.status == 409, response.offset == Int64(offset) else {
            throw failure("an append at \(offset + 1) got \(response)", upload)
        }
    }

    private mutating func append(_ upload: inout Upload, _ location: String, at offset: Int) throws {
        let remaining = upload.bytes.dropFirst(offset)
        let part = random.oneIn(3) ? remaining.count : Int.random(in: 0...remaining.count, using: &random)
        let completes = part == remaining.count && !random.oneIn(8)
        var request = Request.append(upload.dialect, location, at: offset, complete: completes, .none)
        if random.oneIn(8) { request = request.with("Content-Digest", digest(remaining.prefix(part))) }
        let connection = try connect()
        // Sometimes the client retrieves the offset while its append is still open.
        let stop = random.oneIn(5) && part > 1 ? Int.random(in: 0..<part, using: &random) : nil
        // With 100-continue the append reaches the server before the retrieval.
        if stop != nil { request = request.with("Expect", "100-continue") }
        try send(request, remaining.prefix(part), on: connection, &upload, from: offset, stoppingAt: stop)
        guard stop == nil else {
            _ = try retrieve(&upload, location)
            return
        }
        let response = try finish(connection, "PATCH", &upload)
        guard response.isSuccessful else { throw failure("append at \(offset): \(response)", upload) }
        let reachesLength = upload.lengthCompletes && upload.isLengthKnown && part == remaining.count
        try checkCompleteness(response, &upload, expected: completes || reachesLength)
    }

    // MARK: - The wire

    private func digest(_ bytes: some Collection<UInt8>) -> String { Array(bytes).digestField() }

    /// Sends the head and the content piece by piece, and reads responses meanwhile.
    private mutating func send(
        _ request: Request, _ content: ArraySlice<UInt8>, on connection: RawConnection, _ upload: inout Upload,
        from offset: Int, stoppingAt stop: Int? = nil
    ) throws {
        var request = request
        let isChunked = random.oneIn(3)
        request.content = isChunked ? .openChunks : .declared(Int64(content.count))
        try connection.send(request)
        if stop != nil { try checkAndRecord(try connection.requireInterim(), &upload) }
        var remaining = content.prefix(stop ?? content.count)
        var position = offset
        let largest = random.oneIn(2) ? 4000 : 400_000
        while !remaining.isEmpty {
            let piece = remaining.prefix(Int.random(in: 1...max(largest, remaining.count / 20), using: &random))
            remaining = remaining.dropFirst(piece.count)
            position += piece.count
            upload.sent = max(upload.sent, position)
            if isChunked {
                try connection.sendChunk(Array(piece))
            } else {
                try connection.send(piece)
            }
            // After the last byte the final response may follow.
            if !remaining.isEmpty { try listen(on: connection, &upload) }
        }
        if isChunked && stop == nil { try connection.sendLastChunk() }
    }

    /// Reads the final response, and checks it and the interim responses that were not read before.
    private func finish(_ connection: RawConnection, _ method: String, _ upload: inout Upload) throws -> Response {
        let known = connection.interim.count
        let response = try connection.readResponse(to: method)
        try requireAvailable(response, to: method)
        for interim in response.interim.dropFirst(known) { try checkAndRecord(interim, &upload) }
        try checkAndRecord(response, &upload)
        return response
    }

    private func listen(on connection: RawConnection, _ upload: inout Upload) throws {
        while !connection.staysSilent(for: .zero) {
            let response: InterimResponse
            do {
                response = try connection.requireInterim()
            } catch let error as UnexpectedFinalResponse {
                try requireAvailable(error.response, to: "PATCH")
                throw failure("refused: \(error.response)", upload)
            }
            try checkAndRecord(response, &upload)
        }
    }

    // MARK: - Responses

    private func checkAndRecord(_ response: Response, _ upload: inout Upload) throws {
        try checkAndRecord(response as any FieldCarrier, &upload)
        if response.status == 201 && upload.location == nil, let location = response.location,
            location.hasPrefix("/uploads/")
        {
            upload.location = location
        }
    }

    private func checkAndRecord(_ interim: InterimResponse, _ upload: inout Upload) throws {
        try checkAndRecord(interim as any FieldCarrier, &upload)
        if interim.status == 104, let location = interim.location {
            guard upload.location == nil || upload.location == location else {
                throw failure("another location: \(interim)", upload)
            }
            upload.location = location
        }
    }

    /// Verifies that the offset does not decrease and does not exceed the number of sent bytes, and records it.
    private func checkAndRecord(_ carrier: any FieldCarrier, _ upload: inout Upload) throws {
        guard let offset = carrier.offset.map({ Int($0) }) else { return }
        world.countOffset()
        guard offset >= upload.reported else { throw failure("offset \(offset) after \(upload.reported)", upload) }
        guard offset <= upload.sent else { throw failure("offset \(offset) exceeds the sent bytes", upload) }
        upload.reported = offset
    }

    private func checkCompleteness(_ response: Response, _ upload: inout Upload, expected: Bool) throws {
        guard response.states(complete: expected, in: upload.dialect) else {
            throw failure("completeness of \(response)", upload)
        }
        upload.isComplete = expected
    }
}
