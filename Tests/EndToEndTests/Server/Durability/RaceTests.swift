import ConformanceKit
import FoundationEssentials
import Glibc
import SystemCalls
import TestSupport
import Testing

@Suite("Races for one upload", .blocking)
struct RaceTests {
    private static let length = 400_000
    /// Races of DELETE against PATCH, for each of eight clients.
    private static let deletions = ProcessInfo.processInfo.environment["ONWARD_RACES"].flatMap { Int($0) } ?? 15

    /// One append of one client. Its bytes are different from those of all others.
    private struct Attempt: Sendable {
        let number: Int
        let start: Int
        let count: Int
        var isConfirmed = false
        var isCompletion = false

        static func byte(_ number: Int, at position: Int) -> UInt8 {
            UInt8(truncatingIfNeeded: position & 1 == 0 ? number : number >> 8 &+ 131)
        }

        /// Made without a step for each byte: while a client computes, others take the upload from it.
        var bytes: [UInt8] {
            let pair = UInt16(Self.byte(number, at: start)) | UInt16(Self.byte(number, at: start + 1)) << 8
            return [UInt16](repeating: pair.littleEndian, count: count / 2 + 1).withUnsafeBytes {
                Array($0.prefix(count))
            }
        }
    }

    @Test("CON-03 CON-04 OFF-11: twenty clients race for one upload, and leave one contiguous file")
    func twentyClients() throws {
        let history = SeededGenerator.part(20)
        let seed = "ONWARD_SEED=\(SeededGenerator.runSeed)"
        try withServer { server in
            let created = try server.exchange(.creation(complete: false, length: Self.length, .bytes([])))
            let location = try #require(created.location)
            let port = server.port
            let counter = Monitor(0)
            let attempts = try ConcurrentClients.run(20) { number in
                var random = SeededGenerator(seed: history.seed &+ UInt64(number))
                return try Self.race(port, location, counter, &random)
            }.flatMap { $0 }
            let completions = attempts.filter { $0.isConfirmed && $0.isCompletion }
            #expect(!completions.isEmpty, "\(seed)")
            // Those without content are repeats of each other, and get the same answer.
            #expect(completions.count { $0.count > 0 } <= 1, "\(seed)")
            let content = try #require(server.published("file.bin"))
            #expect(content.count == Self.length, "\(seed)")
            for attempt in attempts where attempt.isConfirmed {
                #expect(
                    Array(content[attempt.start..<attempt.start + attempt.count]) == attempt.bytes,
                    "append \(attempt.number) was confirmed and is not there, \(seed)")
            }
            #expect(Self.isChain(content, of: attempts), "\(seed)")
            print("\(seed): \(attempts.count) appends, \(attempts.count { $0.isConfirmed }) of them whole")
        }
    }

    /// Appends wherever the server says, until the upload is complete.
    private static func race(
        _ port: UInt16, _ location: String, _ counter: Monitor<Int>, _ random: inout SeededGenerator
    ) throws -> [Attempt] {
        var attempts: [Attempt] = []
        var told = 0
        while true {
            let head = try RawConnection(port: port).exchange(.retrieval(.v8, location))
            guard head.status == 204, let offset = head.offset.map({ Int($0) }), offset >= told else {
                throw TestFailure("HEAD after \(told): \(head)")
            }
            told = offset
            if head.complete == true { return attempts }
            let count = min(length - offset, Int.random(in: 1...40_000, using: &random))
            let number = counter.withLock { value in
                value += 1
                return value
            }
            var attempt = Attempt(number: number, start: offset, count: count)
            attempt.isCompletion = offset + count == length
            // In pieces, so that others come in between; who is superseded may see its connection closed.
            var rest = attempt.bytes[...]
            let connection = try RawConnection(port: port)
            try connection.send(
                .append(.v8, location, at: offset, complete: attempt.isCompletion, .declared(Int64(count))))
            while !rest.isEmpty {
                let piece = rest.prefix(Int.random(in: 1...20_000, using: &random))
                rest = rest.dropFirst(piece.count)
                if connection.sendWhatGoes(piece) < piece.count { break }
            }
            if let response = try? connection.readResponse(to: "PATCH") {
                attempt.isConfirmed = response.isSuccessful
                guard response.isSuccessful || response.status == 409 || response.status == 400 else {
                    throw TestFailure("PATCH: \(response)")
                }
            }
            attempts.append(attempt)
        }
    }

    /// Whether the content is made of beginnings of the attempts, each behind the end of another one.
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

    @Test("CON-08 OFF-11 OFF-09: wherever an append is cut, HEAD's offset is the one at which the next is accepted")
    func randomCuts() throws {
        let history = SeededGenerator.part(21)
        try withServer { server in
            let port = server.port
            _ = try ConcurrentClients.run(4) { number in
                var random = SeededGenerator(seed: history.seed &+ UInt64(number))
                try Self.cutAgainAndAgain(port, "/files/cut\(number).bin", &random)
            }
            for number in 0..<4 {
                #expect(
                    server.published("cut\(number).bin") == BytePool.repeated(0..<1_000_000),
                    "ONWARD_SEED=\(SeededGenerator.runSeed), client \(number)")
            }
        }
    }

    private static func cutAgainAndAgain(_ port: UInt16, _ target: String, _ random: inout SeededGenerator) throws {
        let length = 1_000_000
        let created = try RawConnection(port: port).exchange(
            .creation(.v8, "PUT", target, complete: false, .bytes([])))
        guard let location = created.location else { throw TestFailure("\(created)") }
        var stalled: [RawConnection] = []
        var told = 0
        for round in 1... {
            let head = try RawConnection(port: port).exchange(.retrieval(.v8, location))
            guard let offset = head.offset.map({ Int($0) }), offset >= told else {
                throw TestFailure("round \(round), HEAD after \(told): \(head)")
            }
            told = offset
            if round == 120 {
                let last = try RawConnection(port: port).exchange(
                    .append(.v8, location, at: offset, complete: true, .bytes(BytePool.repeated(offset..<length))),
                    within: .seconds(20))
                guard last.status == 201 else { throw TestFailure("completion: \(last)") }
                return
            }
            // Every other append gets a response: it is at the offset of HEAD.
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
            // A request that is still on its way while HEAD is answered comes after it.
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

    @Test("CAN-06 CAN-07 CAN-05: of DELETE and a completing PATCH at the same time, one wins entirely")
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
                // Canceled or not, the upload is gone once DELETE has been answered.
                #expect(outcome.deletion == 204, "\(context)")
                #expect([404, 410].contains(outcome.later), "\(context)")
                if let content { #expect(content == BytePool.repeated(0..<50_000), "\(context)") }
                if outcome.completion == 201 { #expect(content != nil, "\(context)") }
                if let status = outcome.completion, status != 201 { #expect(content == nil, "\(context)") }
            }
            let answered = outcomes.count { $0.completion == 201 }
            let silent = outcomes.count { $0.completion == nil && server.published($0.name) != nil }
            print(
                "DELETE against PATCH: \(outcomes.count) races, PATCH won \(answered) with and \(silent) without answer"
            )
            // What is complete is answered, whatever becomes of its resource.
            #expect(silent == 0)
            #expect(server.unfinished.isEmpty)
        }
    }

    private struct Outcome: Sendable {
        let name: String
        let deletion: Int
        /// Nil where the connection was closed without an answer.
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
            // The last bytes of both requests leave close together, in either order.
            try canceler.send(deletion.dropLast())
            let last = BytePool.repeated(cut..<50_000)
            if Bool.random(using: &random) {
                try canceler.send(deletion.suffix(1))
                _ = writer.sendWhatGoes(last)
            } else {
                _ = writer.sendWhatGoes(last)
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
