import ConformanceKit
import SystemCalls
import TestSupport

/// A client that uploads file after file through servers that fail, each request to another server. It checks that no
/// reported offset decreases, and that each completed file has its content.
struct ClusterClient {
    /// The counts and results that the clients of a test share.
    final class World: Sendable {
        private struct State {
            var isEnding = false
            var completed: [String: Range<Int>] = [:]
            var resumed = 0
            var unavailable = 0
        }

        let ports: [UInt16]
        /// Whether a proxy responds if a server does not.
        let isBehindProxy: Bool
        private let state = Monitor(State())

        init(ports: [UInt16], isBehindProxy: Bool = false) { (self.ports, self.isBehindProxy) = (ports, isBehindProxy) }

        func end() { state.withLock { $0.isEnding = true } }
        var isEnding: Bool { state.withLock { $0.isEnding } }
        func complete(_ name: String, _ content: Range<Int>) { state.withLock { $0.completed[name] = content } }
        func countResumption() { state.withLock { $0.resumed += 1 } }
        func countUnavailable() { state.withLock { $0.unavailable += 1 } }
        var completed: [String: Range<Int>] { state.withLock { $0.completed } }
        var summary: String {
            state.withLock {
                "\($0.completed.count) files completed, \($0.resumed) resumptions, \($0.unavailable) responses with 503"
            }
        }
    }

    private let number: Int
    private let world: World
    private var random: SeededGenerator
    private let largest: Int
    /// The maximum time for one file, faults included.
    private let limit: Duration

    private struct Upload {
        var name: String
        var content: Range<Int>
        var location: String?
        /// The highest offset that a server has reported.
        var reported = 0
        var isComplete = false

        var bytes: ArraySlice<UInt8> { BytePool.bytes[content] }
    }

    init(_ number: Int, world: World, seed: UInt64, largest: Int = 12_000_000, limit: Duration = .seconds(120)) {
        self.number = number
        self.world = world
        self.largest = largest
        self.limit = limit
        random = SeededGenerator(seed: seed &+ UInt64(number))
    }

    /// Uploads files until the test ends.
    mutating func run() throws {
        var files = 0
        while !world.isEnding {
            let count =
                random.oneIn(2) ? Int.random(in: 0...200_000, using: &random) : .random(in: 0...largest, using: &random)
            let start = Int.random(in: 0...BytePool.bytes.count - count, using: &random)
            var upload = Upload(name: "", content: start..<start + count)
            let deadline = ContinuousClock.now + limit
            var attempts = 0
            while !upload.isComplete {
                guard ContinuousClock.now < deadline else { throw failure("not complete in time", upload) }
                if upload.location == nil {
                    files += 1
                    (upload.name, upload.reported) = ("c\(number)-\(files)", 0)
                }
                if attempts > 0 { world.countResumption() }
                attempts += 1
                do { try advance(&upload) } catch let error as TestFailure { throw error } catch {
                    // The connection broke, as it may when a server fails.
                    SystemClock.pause(nanoseconds: .random(in: 20_000_000...200_000_000, using: &random))
                }
            }
            world.complete(upload.name, upload.content)
        }
    }

    private func failure(_ what: String, _ upload: Upload) -> TestFailure {
        TestFailure("client \(number), \(upload.name), reported \(upload.reported) of \(upload.content.count): \(what)")
    }

    private mutating func connect() throws -> RawConnection {
        try RawConnection(port: world.ports.randomElement(using: &random) ?? 0)
    }

    private mutating func advance(_ upload: inout Upload) throws {
        guard let location = upload.location else {
            let request = Request.creation(
                .v8, "PUT", "/files/\(upload.name)", complete: true, length: upload.content.count,
                .declared(Int64(upload.content.count)))
            return try send(request, upload.bytes, &upload)
        }
        let response = try connect().exchange(.retrieval(.v8, location))
        guard try isAvailable(response, upload) else { return }
        guard response.status == 204, let offset = response.offset.map({ Int($0) }) else {
            throw failure("the upload is lost: \(response)", upload)
        }
        try record(offset, &upload)
        if response.complete == true {
            guard offset == upload.content.count else { throw failure("complete at \(offset)", upload) }
            upload.isComplete = true
            return
        }
        let remaining = upload.bytes.dropFirst(offset)
        let part = random.oneIn(2) ? remaining.count : Int.random(in: 0...remaining.count, using: &random)
        let request = Request.append(
            .v8, location, at: offset, complete: part == remaining.count, .declared(Int64(part)))
        try send(request, remaining.prefix(part), &upload)
    }

    private func isAvailable(_ response: Response, _ upload: Upload) throws -> Bool {
        let isOfProxy = world.isBehindProxy && (502...504).contains(response.status)
        guard response.status == 503 || isOfProxy else { return true }
        guard response.fields["Retry-After"] != nil || isOfProxy else {
            throw failure("503 without Retry-After: \(response)", upload)
        }
        world.countUnavailable()
        SystemClock.pause(nanoseconds: 100_000_000)
        return false
    }

    private mutating func send(_ request: Request, _ content: ArraySlice<UInt8>, _ upload: inout Upload) throws {
        let connection = try connect()
        try connection.send(request)
        var remaining = content
        while !remaining.isEmpty {
            let piece = remaining.prefix(Int.random(in: 1...400_000, using: &random))
            try connection.send(piece)
            remaining = remaining.dropFirst(piece.count)
            while !remaining.isEmpty, !connection.staysSilent(for: .zero) {
                do { try note(try connection.requireInterim(), &upload) } catch let error as UnexpectedFinalResponse {
                    return try finish(error.response, &upload)
                }
            }
        }
        let known = connection.interim.count
        let response = try connection.readResponse(to: request.method)
        for interim in response.interim.dropFirst(known) { try note(interim, &upload) }
        try finish(response, &upload)
    }

    private func note(_ interim: InterimResponse, _ upload: inout Upload) throws {
        if interim.status == 104, let location = interim.location { upload.location = location }
        if let offset = interim.offset { try record(Int(offset), &upload) }
    }

    private func finish(_ response: Response, _ upload: inout Upload) throws {
        guard try isAvailable(response, upload) else { return }
        if let offset = response.offset { try record(Int(offset), &upload) }
        switch response.status {
        case 200...299:
            if upload.location == nil {
                upload.location = response.location.flatMap { $0.hasPrefix("/uploads/") ? $0 : nil }
            }
            if response.complete == true { upload.isComplete = true }
        // Another request of this client, which a server still serves, has changed the offset.
        case 409: break
        case 500 where upload.location != nil && response.complete != true: break
        default: throw failure("\(response)", upload)
        }
    }

    private func record(_ offset: Int, _ upload: inout Upload) throws {
        guard offset >= upload.reported else { throw failure("offset \(offset) after \(upload.reported)", upload) }
        upload.reported = offset
    }
}

extension ClusterClient.World {
    /// Requires that every server serves every completed file with its content.
    func inspect(_ nodes: [ServerProcess]) throws {
        for (index, file) in completed.enumerated() {
            let response = try nodes[index % nodes.count].exchange(.get("/files/\(file.key)"))
            guard response.status == 200, areEqual(response.content, BytePool.bytes[file.value]) else {
                throw TestFailure("\(file.key) was complete, but a server answers with \(response)")
            }
        }
    }
}
