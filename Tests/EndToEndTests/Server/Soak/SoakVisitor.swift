import ConformanceKit
import FoundationEssentials
import Glibc
import TestSupport

/// A client that downloads, disconnects in the middle, holds connections open, and requests missing files.
struct SoakVisitor {
    private let world: CrashWorld
    private var random: SeededGenerator
    /// The connections that the client holds open.
    private var held: [RawConnection] = []

    init(world: CrashWorld, random: SeededGenerator) {
        self.world = world
        self.random = random
    }

    mutating func run() throws {
        while !world.isEnding {
            let life = world.awaitServer()
            do {
                try visit()
            } catch {
                if error is TestFailure { throw error }
                guard world.hasCrashed(since: life) else { throw error }
                held = []
            }
        }
        held = []
    }

    private func connect() throws -> RawConnection { try RawConnection(port: world.port) }

    private mutating func visit() throws {
        switch Int.random(in: 0..<8, using: &random) {
        case 0, 1: try download()
        case 2: try leaveUploadUnfinished(bytes: Int.random(in: 0...300_000, using: &random))
        case 3: try leaveDownload()
        case 4: try requestMissingResources()
        case 5: try sendNonsense()
        case 6: try createAndCancel()
        default: try holdConnection()
        }
    }

    private mutating func download() throws {
        guard let name = world.expectedNames.randomElement(using: &random) else { return }
        let first = Int.random(in: 0...2_000_000, using: &random)
        let last = first + Int.random(in: 0...500_000, using: &random)
        let request = Request.get("/files/\(name)").with("Range", "bytes=\(first)-\(last)")
        let response = try connect().exchange(request, within: .seconds(60))
        switch response.status {
        case 206:
            guard world.isPart(response.content, of: name, from: first) else {
                throw TestFailure("\(name), bytes \(first)-\(last): \(response.content.count) bytes that are wrong")
            }
        case 404, 416: break
        default: throw TestFailure("GET \(name): \(response)")
        }
    }

    private mutating func leaveUploadUnfinished(bytes: Int) throws {
        let connection = try connect()
        let target = "/files/unfinished-\(random.next())"
        // The upload is counted before the response, because the server may be killed right after the creation.
        world.countUnfinished()
        try connection.send(Request.creation(.v8, "PUT", target, complete: true, .declared(5_000_000)))
        guard try connection.requireInterim(within: .seconds(60)).location != nil else {
            throw TestFailure("no location")
        }
        try connection.send(BytePool.bytes.prefix(bytes), within: .seconds(60))
        if random.oneIn(2) { connection.reset() } else { connection.close() }
    }

    private mutating func leaveDownload() throws {
        guard let name = world.expectedNames.randomElement(using: &random) else { return }
        let connection = try connect()
        try connection.send(.get("/files/\(name)"))
        _ = connection.staysSilent(for: .milliseconds(Int.random(in: 0...20, using: &random)))
        connection.reset()
    }

    private mutating func requestMissingResources() throws {
        let digits = String(random.next(), radix: 16)
        let id = String(repeating: "0", count: 32 - digits.count) + digits
        let response = try connect().exchange(.retrieval(.v8, "/uploads/\(id)"), within: .seconds(60))
        guard response.status == 404 else { throw TestFailure("HEAD of an unknown upload: \(response)") }
    }

    private mutating func sendNonsense() throws {
        let lines = [
            "GET / HTTP/1.1\r\n\r\n", "\u{16}\u{03}\u{01}",
            "PUT /files/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
            "PATCH /uploads/x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n", "\r\n\r\n\r\n",
            "POST /files/ HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        ]
        let connection = try connect()
        try connection.send(lines.randomElement(using: &random) ?? "")
        if random.oneIn(2) { connection.reset() } else { connection.endOutput() }
    }

    private mutating func createAndCancel() throws {
        let connection = try connect()
        let target = "/files/cancelled-\(random.next())"
        var isGone = false
        defer { if !isGone { world.countUnfinished() } }
        let creation = try connection.exchange(
            .creation(.v8, "PUT", target, complete: false, .bytes(Array(BytePool.bytes.prefix(1000)))),
            within: .seconds(60))
        guard creation.status == 201, let location = creation.location else {
            throw TestFailure("creation: \(creation)")
        }
        let response = try connection.exchange(.cancellation(.v8, location), within: .seconds(60))
        guard response.status == 204 else { throw TestFailure("cancellation: \(response)") }
        isGone = true
    }

    private mutating func holdConnection() throws {
        let connection = try connect()
        if random.oneIn(2) { try connection.send("GET /files/x HTTP/1.1\r\nHost: local") }
        held.append(connection)
        if held.count > 5 { held.remove(at: Int.random(in: 0..<held.count, using: &random)) }
    }
}
