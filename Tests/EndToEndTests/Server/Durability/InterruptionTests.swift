import ConformanceKit
import TestSupport
import Testing

@Suite("Interrupted requests", .blocking)
struct InterruptionTests {
    /// The ways in which a client ends its connection.
    enum Cut: CaseIterable, CustomTestStringConvertible {
        case end, halfClose, reset

        var testDescription: String { "\(self)" }
    }

    private static let length = 3_000_000

    private func cut(_ connection: RawConnection, _ kind: Cut) throws {
        switch kind {
        case .end: connection.close()
        case .halfClose: connection.endOutput()
        case .reset:
            // A reset discards the unacknowledged bytes in the sending kernel; all other bytes must be kept.
            try connection.awaitAcknowledgment()
            connection.reset()
        }
    }

    @Test(
        "CRE-15 CRE-16 CRE-18: a creation that is cut keeps every byte that arrived, and is not complete",
        arguments: Cut.allCases, [false, true])
    func creation(_ kind: Cut, chunked: Bool) throws {
        var random = SeededGenerator.part(30 + (chunked ? 1 : 0))
        try withServer { server in
            for round in 1...8 {
                let context: Comment = "ONWARD_SEED=\(SeededGenerator.runSeed), round \(round)"
                let count = round == 1 ? 1 : Int.random(in: 1...Self.length - 1, using: &random)
                let connection = try server.connect()
                let target = "/files/\(round).bin"
                try connection.send(
                    .creation(
                        .v8, "PUT", target, complete: true, chunked ? .openChunks : .declared(Int64(Self.length))))
                // Unread bytes would turn an orderly close into a reset.
                let location = try #require(try connection.requireInterim().location, context)
                try send(0..<count, chunked: chunked, on: connection, &random)
                try cut(connection, kind)
                try server.awaitInterruptions(round)
                let head = try server.exchange(.retrieval(.v8, location))
                #expect(head.status == 204, context)
                #expect(head.offset == Int64(count), context)
                #expect(head.complete == false, context)
                #expect(head.length == (chunked ? nil : Int64(Self.length)), context)
                #expect(server.published("\(round).bin") == nil, context)
            }
        }
    }

    @Test(
        "APP-13 APP-14: an append that is cut keeps every byte that arrived, and does not complete the upload",
        arguments: Cut.allCases, [false, true])
    func append(_ kind: Cut, chunked: Bool) throws {
        var random = SeededGenerator.part(40 + (chunked ? 1 : 0))
        try withServer { server in
            let created = try server.exchange(.creation(complete: false, length: Self.length, .bytes([])))
            let location = try #require(created.location)
            var offset = 0
            for round in 1...8 {
                let context: Comment = "ONWARD_SEED=\(SeededGenerator.runSeed), round \(round)"
                let count = Int.random(in: 0...(Self.length - offset) / 4, using: &random)
                let connection = try server.connect()
                try connection.send(
                    .append(
                        .v8, location, at: offset, complete: true,
                        chunked ? .openChunks : .declared(Int64(Self.length - offset))
                    ).with("Expect", "100-continue"))
                // After 100, the server has the head of the request.
                try connection.requireInterim()
                try send(offset..<offset + count, chunked: chunked, on: connection, &random)
                try cut(connection, kind)
                try server.awaitInterruptions(round)
                offset += count
                let head = try server.exchange(.retrieval(.v8, location))
                #expect(head.offset == Int64(offset), context)
                #expect(head.complete == false, context)
                #expect(server.published("file.bin") == nil, context)
            }
            let remaining = BytePool.repeated(offset..<Self.length)
            #expect(
                try server.exchange(.append(.v8, location, at: offset, complete: true, .bytes(remaining))).status == 201
            )
            #expect(server.published("file.bin") == BytePool.repeated(0..<Self.length))
        }
    }

    private func send(
        _ range: Range<Int>, chunked: Bool, on connection: RawConnection, _ random: inout SeededGenerator
    ) throws {
        guard chunked else { return try connection.send(BytePool.repeated(range)) }
        var position = range.lowerBound
        while position < range.upperBound {
            let end = min(range.upperBound, position + Int.random(in: 1...300_000, using: &random))
            try connection.sendChunk(BytePool.repeated(position..<end))
            position = end
        }
    }

    /// The argument is the part of the chunked coding that is sent before the cut.
    @Test(
        "APP-14: chunked content that ends before the end of its last chunk does not complete the upload",
        arguments: ["", "5", "5\r", "5\r\n", "5\r\nhel", "5\r\nhello", "5\r\nhello\r\n", "5\r\nhello\r\n0", "0\r\n"])
    func insideTheCoding(_ text: String) throws {
        try withServer { server in
            let connection = try server.connect()
            try connection.send(.creation(complete: true, .openChunks))
            let location = try #require(try connection.requireInterim().location)
            try connection.send(text)
            connection.endOutput()
            try server.awaitInterruptions(1)
            let head = try server.exchange(.retrieval(.v8, location))
            let content = text.split(separator: "\r\n").dropFirst().first ?? ""
            #expect(head.offset == Int64(content.count))
            #expect(head.complete == false)
            #expect(server.published("file.bin") == nil)
            let last = try server.exchange(
                .append(
                    .v8, location, at: content.count, complete: true,
                    .bytes(Array("hello".dropFirst(content.count).utf8))))
            #expect(last.status == 201)
            #expect(server.published("file.bin") == Array("hello".utf8))
        }
    }

    @Test("INT-08 OFF-10 CRE-21: after a cut at any byte, HEAD reports no offset below that of a 104")
    func progress() throws {
        var random = SeededGenerator.part(50)
        try withServer { server in
            var seen = 0
            for round in 1...6 {
                let context: Comment = "ONWARD_SEED=\(SeededGenerator.runSeed), round \(round)"
                let length = 40_000_000
                let connection = try server.connect()
                try connection.send(
                    .creation(.v8, "PUT", "/files/\(round).bin", complete: true, .declared(Int64(length))))
                let location = try #require(try connection.requireInterim().location, context)
                let count = Int.random(in: 12_000_000..<length - 10_000, using: &random)
                var reported: Int64 = 0
                var position = 0
                // On a slow disk the first report can come after `count` bytes: the last round then continues slowly.
                while position < count || (round == 6 && seen == 0 && position < length - 1) {
                    let end = position < count ? min(count, position + 1 << 20) : position + 1
                    try connection.send(BytePool.repeated(position..<end))
                    position = end
                    while !connection.staysSilent(for: end <= count ? .zero : .milliseconds(50)) {
                        let interim = try connection.requireInterim()
                        let offset = try #require(interim.offset, context)
                        #expect(interim.location == nil, context)
                        #expect(offset >= reported, context)
                        reported = offset
                        seen += 1
                    }
                }
                connection.reset()
                let head = try server.exchange(.retrieval(.v8, location))
                #expect(try #require(head.offset, context) >= reported, context)
                #expect(head.complete == false, context)
            }
            #expect(seen > 0)
        }
    }

    @Test("LIM-06: the bytes of an interrupted request are kept, even if they are fewer than --min-append-size")
    func minAppendSize() throws {
        try withServer("--min-append-size", "10") { server in
            let location = try server.begin()
            let connection = try server.connect()
            try connection.open(.append(.v8, location, at: 0, complete: false, .declared(20)))
            try connection.send([1, 2, 3])
            connection.close()
            try server.awaitInterruption("PATCH")
            #expect(try server.retrieve(location).offset == 3)
        }
    }

    @Test("DIG-02 DIG-07: bytes do not count before their Content-Digest is compared, not even after an interruption")
    func contentDigest() throws {
        try withServer { server in
            let content = Payload.bytes(32 << 20)
            let location = try server.begin(.v8, "/files/f", [1])
            let connection = try server.connect()
            let request = Request.append(.v8, location, at: 1, complete: true, .declared(Int64(content.count)))
                .with("Content-Digest", content.digestField())
            try connection.open(request)
            for start in stride(from: 0, to: 24 << 20, by: 8 << 20) {
                try connection.send(content[start..<start + (8 << 20)])
            }
            while !connection.staysSilent(for: .milliseconds(50)) { try connection.requireInterim() }
            #expect(connection.interim.allSatisfy { ($0.offset ?? 1) <= 1 })
            connection.close()
            try server.awaitInterruption("PATCH")
            #expect(try server.retrieve(location).offset == 1)
            let again = Request.append(.v8, location, at: 1, complete: true, .bytes(content))
                .with("Content-Digest", content.digestField())
            #expect(try server.exchange(again).status == 201)
            #expect(server.published("f") == [1] + content)
        }
    }
}
