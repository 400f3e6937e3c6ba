import ConformanceKit
import FoundationEssentials
import Glibc
import SystemCalls
import TestSupport
import Testing

@Suite("Races for one upload", .blocking)
struct RaceTests {
    private static let length = 400_000
    /// The number of races of DELETE against PATCH for each of eight clients.
    private static let deletions = ProcessInfo.processInfo.environment["ONWARD_RACES"].flatMap { Int($0) } ?? 15

    /// An append of a client, with bytes that differ from those of all other appends.
    private struct Attempt: Sendable {
        let number: Int
        let start: Int
        let count: Int
        var isConfirmed = false
        var isCompletion = false

        static func byte(_ number: Int, at position: Int) -> UInt8 {
            UInt8(truncatingIfNeeded: position & 1 == 0 ? number : number >> 8 &+ 131)
        }

        /// The bytes are computed in bulk, because other clients take over the upload while a client computes slowly.
        var bytes: [UInt8] {
            let pair = UInt16(Self.byte(number, at: start)) | UInt16(Self.byte(number, at: start + 1)) << 8
            return [UInt16](repeating: pair.littleEndian, count: count / 2 + 1).withUnsafeBytes {
                Array($0.prefix(count))
            }
        }
    }

    @Test("CON-03 CON-04 OFF-11: twenty clients race to append to one upload, and the file is contiguous")
    func twentyClients() throws {
        let history = SeededGenerator.part(20)
        let seed = "ONWARD_SEED=\(SeededGenerator.runSeed)"
        try withServer { server in
            let created = try server.exchange(.creation(complete: false, length: Self.length, .bytes([])))
            let location = try #require(created.location)
            let port = server.port
            let counter = Counter()
            let attempts = try ConcurrentClients.run(20) { number in
                var random = SeededGenerator(seed: history.seed &+ UInt64(number))
                return try Self.race(port, location, counter, &random)
            }.flatMap { $0 }
            let completions = attempts.filter { $0.isConfirmed && $0.isCompletion }
            #expect(!completions.isEmpty, "\(seed)")
            // Completions without content are repeats of each other, and get the same response.
            #expect(completions.count { $0.count > 0 } <= 1, "\(seed)")
            let content = try #require(server.published("file.bin"))
            #expect(content.count == Self.length, "\(seed)")
            for attempt in attempts where attempt.isConfirmed {
                #expect(
                    Array(content[attempt.start..<attempt.start + attempt.count]) == attempt.bytes,
                    "append \(attempt.number) was confirmed, but its bytes are missing, \(seed)")
            }
            #expect(Self.isChain(content, of: attempts), "\(seed)")
            print("\(seed): \(attempts.count) appends, \(attempts.count { $0.isConfirmed }) of them confirmed")
        }
    }

    /// Appends at the offset that the server reports, until the upload is complete.
    private static func race(
        _ port: UInt16, _ location: String, _ counter: Counter, _ random: inout SeededGenerator
    ) throws -> [Attempt] {
        var attempts: [Attempt] = []
        var reported = 0
        while true {
            let head = try RawConnection(port: port).exchange(.retrieval(.v8, location))
            // One of several servers cannot get the upload in time.
            if SharedStorage.nodes > 1, head.status == 503 { continue }
            guard head.status == 204, let offset = head.offset.map({ Int($0) }), offset >= reported else {
                throw TestFailure("HEAD after \(reported): \(head)")
            }
            reported = offset
            if head.complete == true { return attempts }
            let count = min(length - offset, Int.random(in: 1...40_000, using: &random))
            let number = counter.next()
            var attempt = Attempt(number: number, start: offset, count: count)
            attempt.isCompletion = offset + count == length
            // The bytes are sent in pieces, so that other appends come in between. The connection of a superseded
            // append may be closed.
            var remaining = attempt.bytes[...]
            let connection = try RawConnection(port: port)
            try connection.send(
                .append(.v8, location, at: offset, complete: attempt.isCompletion, .declared(Int64(count))))
            while !remaining.isEmpty {
                let piece = remaining.prefix(Int.random(in: 1...20_000, using: &random))
                remaining = remaining.dropFirst(piece.count)
                if connection.sendUntilRefused(piece) < piece.count { break }
            }
            if let response = try? connection.readResponse(to: "PATCH") {
                attempt.isConfirmed = response.isSuccessful
                let isInUse = SharedStorage.nodes > 1 && response.isOfUploadInUse(to: "PATCH")
                guard response.isSuccessful || response.status == 409 || response.status == 400 || isInUse else {
                    throw TestFailure("PATCH: \(response)")
                }
            }
            attempts.append(attempt)
        }
    }

    /// Whether the content is a sequence of prefixes of the attempts, each of which starts at the end of another.
    private static func isChain(_ content: [UInt8], of attempts: [Attempt]) -> Bool {
        let starts = Dictionary(grouping: attempts, by: \.start)
        var reachable: Set<Int> = [0]
        for start in starts.keys.sorted() where reachable.contains(start) {
            for attempt in starts[start] ?? [] {
                var position = start
                while position < start + attempt.count,
                    content[position] == Attempt.byte(attempt.number, at: position)
                {
                    position += 1
                    if starts[position] != nil || position == content.count { reachable.insert(position) }
                }
            }
        }
        return reachable.contains(content.count)
    }

    @Test("CON-08 OFF-11 OFF-09: after a cut at any byte the next append is accepted at the offset that HEAD reports")
    func randomCuts() throws {
        let history = SeededGenerator.part(21)
        try withServer { server in
            let port = server.port
            _ = try ConcurrentClients.run(4) { number in
                var random = SeededGenerator(seed: history.seed &+ UInt64(number))
                try Self.repeatedCuts(port, "/files/cut\(number).bin", &random)
            }
            for number in 0..<4 {
                #expect(
                    server.published("cut\(number).bin") == BytePool.repeated(0..<1_000_000),
                    "ONWARD_SEED=\(SeededGenerator.runSeed), client \(number)")
            }
        }
    }

    private static func repeatedCuts(_ port: UInt16, _ target: String, _ random: inout SeededGenerator) throws {
        let length = 1_000_000
        let created = try RawConnection(port: port).exchange(
            .creation(.v8, "PUT", target, complete: false, .bytes([])))
        guard let location = created.location else { throw TestFailure("\(created)") }
        var stalled: [RawConnection] = []
        var reported = 0
        for round in 1... {
            let head = try RawConnection(port: port).exchange(.retrieval(.v8, location))
            guard let offset = head.offset.map({ Int($0) }), offset >= reported else {
                throw TestFailure("round \(round), HEAD after \(reported): \(head)")
            }
            reported = offset
            if round == 120 {
                let last = try RawConnection(port: port).exchange(
                    .append(.v8, location, at: offset, complete: true, .bytes(BytePool.repeated(offset..<length))),
                    within: .seconds(20))
                guard last.status == 201 else { throw TestFailure("completion: \(last)") }
                return
            }
            // In every second round the append ends normally; its response has the offset of the end of its content.
            let count = Int.random(in: 0...min(15_000, (length - offset) / 2), using: &random)
            let content = BytePool.repeated(offset..<offset + count)
            let connection = try RawConnection(port: port)
            if round.isMultiple(of: 2) {
                let answer = try connection.exchange(
                    .append(.v8, location, at: offset, complete: false, .bytes(content)))
                guard answer.isSuccessful, answer.offset == Int64(offset + count) else {
                    throw TestFailure("round \(round), append at \(offset): \(answer)")
                }
                continue
            }
            let isChunked = Bool.random(using: &random)
            try connection.send(
                .append(
                    .v8, location, at: offset, complete: false, isChunked ? .openChunks : .declared(Int64(count + 9))
                )
                .with("Expect", "100-continue"))
            // Without this wait, the server could receive the append after the next HEAD.
            try connection.requireInterim()
            for start in stride(from: 0, to: content.count, by: 5000) {
                let piece = Array(content[start..<min(content.count, start + 5000)])
                try isChunked ? connection.sendChunk(piece) : connection.send(piece)
            }
            switch Int.random(in: 0..<3, using: &random) {
            case 0: connection.reset()
            case 1: connection.close()
            default: stalled.append(connection)
            }
        }
    }

    @Test("CAN-06 CAN-07 CAN-05: of DELETE and a completing PATCH at the same time, exactly one takes effect")
    func deletionAgainstCompletion() throws {
        let history = SeededGenerator.part(22)
        try withServer { server in
            let port = server.port
            let outcomes = try ConcurrentClients.run(8) { number in
                var random = SeededGenerator(seed: history.seed &+ UInt64(number))
                return try Self.raceDeletion(port, "/files/race\(number)-", rounds: Self.deletions, &random)
            }.flatMap { $0 }
            for outcome in outcomes {
                let content = server.published(outcome.name)
                let context = "\(outcome), ONWARD_SEED=\(SeededGenerator.runSeed)"
                // In either case the upload is gone after the response to DELETE.
                #expect(outcome.deletion == 204, "\(context)")
                #expect([404, 410].contains(outcome.later), "\(context)")
                if let content { #expect(content == BytePool.repeated(0..<50_000), "\(context)") }
                if outcome.completion == 201 { #expect(content != nil, "\(context)") }
                if let status = outcome.completion, status != 201 { #expect(content == nil, "\(context)") }
            }
            let answered = outcomes.count { $0.completion == 201 }
            let silent = outcomes.count { $0.completion == nil && server.published($0.name) != nil }
            print(
                "DELETE against PATCH: \(outcomes.count) races, PATCH completed \(answered) uploads with a response, "
                    + "\(silent) without a response")
            // A completed upload has a response, even if its resource is deleted. If another one of several servers gets
            // the DELETE, the connection of the PATCH can end between the publication and the response.
            #expect(silent == 0 || SharedStorage.nodes > 1)
            #expect(server.unfinished.isEmpty)
        }
    }

    private struct Outcome: Sendable {
        let name: String
        let deletion: Int
        /// The status of the response to PATCH; `nil` if the connection was closed without a response.
        let completion: Int?
        let later: Int
    }

    private static func raceDeletion(
        _ port: UInt16, _ prefix: String, rounds: Int, _ random: inout SeededGenerator
    ) throws -> [Outcome] {
        try (0..<rounds).map { round in
            let target = "\(prefix)\(round).bin"
            let created = try RawConnection(port: port).exchange(
                .creation(.v8, "PUT", target, complete: false, .bytes(BytePool.repeated(0..<20_000))))
            guard let location = created.location else { throw TestFailure("\(created)") }
            let writer = try RawConnection(port: port)
            let canceler = try RawConnection(port: port)
            let deletion = Request.cancellation(.v8, location).head(authority: canceler.authority)
            try writer.send(.append(.v8, location, at: 20_000, complete: true, .declared(30_000)))
            let cut = Int.random(in: 20_000...49_999, using: &random)
            try writer.send(BytePool.repeated(20_000..<cut))
            // The last bytes of both requests are sent at almost the same time, in either order.
            try canceler.send(deletion.dropLast())
            let last = BytePool.repeated(cut..<50_000)
            if Bool.random(using: &random) {
                try canceler.send(deletion.suffix(1))
                _ = writer.sendUntilRefused(last)
            } else {
                _ = writer.sendUntilRefused(last)
                var pause = timespec(
                    tv_sec: 0,
                    tv_nsec: Int.random(in: 0...8_000_000, using: &random) << Int.random(in: 0...3, using: &random))
                nanosleep(&pause, nil)
                try canceler.send(deletion.suffix(1))
            }
            let answer = try canceler.readResponse(to: "DELETE")
            let completion = try? writer.readResponse(to: "PATCH")
            let later = try RawConnection(port: port).exchange(.retrieval(.v8, location))
            return Outcome(
                name: String(target.dropFirst("/files/".count)), deletion: answer.status,
                completion: completion?.status, later: later.status)
        }
    }
}
