import SystemCalls
import TestSupport
import Testing

@testable import ObjectStorage

/// Tests the behavior of the client when the storage or the network fails.
@Suite("Repetition of requests to object storages")
struct RepetitionTests {
    private static let stored = ScriptedStorage.response("200 OK", ["ETag: \"x\""])
    private static let slowDown = ScriptedStorage.error("503 Slow Down", "SlowDown")

    private static func part(_ range: String, _ content: String) -> String {
        ScriptedStorage.response("206 Partial Content", ["Content-Range: bytes \(range)"], content)
    }

    @Test(
        "A request is repeated after a temporary error, with random and growing pauses",
        arguments: [
            slowDown, ScriptedStorage.response("500 Internal Server Error"),
            ScriptedStorage.response("502 Bad Gateway", [], "<html>proxy"), ScriptedStorage.response("504 Timeout"),
            ScriptedStorage.response("429 Too Many Requests"),
            ScriptedStorage.error("400 Bad Request", "RequestTimeout"),
        ])
    func temporary(_ response: String) async throws {
        try await onThread {
            let storage = try ScriptedStorage([.keep(response), .keep(response), .keep(Self.stored)])
            let pauses = Monitor<[Int64]>([])
            try storage.client(pauses: pauses).put("k", Array("content".utf8))
            #expect(storage.requests.map(\.content) == Array(repeating: Array("content".utf8), count: 3))
            #expect(storage.requests.allSatisfy { $0.method == "PUT" && $0.target == "/bucket/p/k" })
            let waits = pauses.withLock { $0.map { $0 / 1_000_000 } }
            #expect(waits.count == 2 && 50...100 ~= waits[0] && 100...200 ~= waits[1])
            #expect(storage.connections == 1)
        }
    }

    @Test("A request that is refused is not repeated")
    func refused() async throws {
        try await onThread {
            let storage = try ScriptedStorage([
                .keep(ScriptedStorage.error("403 Forbidden", "AccessDenied", "<Message>Access\nDenied</Message>"))
            ])
            #expect(throws: ObjectError.refused(status: 403, code: "AccessDenied", message: "Access Denied")) {
                try storage.client().put("k", [])
            }
            #expect(storage.requests.count == 1)
            #expect(storage.requests[0].fields["content-length"] == "0")
        }
    }

    @Test("Retry-After is respected, as seconds and as a date, and a time after the deadline ends the operation")
    func retryAfter() async throws {
        try await onThread {
            let storage = try ScriptedStorage([
                .keep(ScriptedStorage.response("503 Unavailable", ["Retry-After: 3"])),
                .keep(ScriptedStorage.response("503 Unavailable", ["Retry-After: Fri, 24 May 2013 00:00:07 GMT"])),
                .keep(ScriptedStorage.response("503 Unavailable", ["Retry-After: 3600"])),
            ])
            let pauses = Monitor<[Int64]>([])
            let client = try storage.client(pauses: pauses, clock: { 1_369_353_600 })
            #expect(throws: ObjectError.unavailable("status 503, after 3 attempts")) { try client.put("k", []) }
            #expect(pauses.withLock { $0 } == [3_000_000_000, 7_000_000_000])
        }
    }

    @Test("A storage that stalls is an error soon, although content that moves has more time")
    func stalled() async throws {
        try await onThread {
            let storage = try ScriptedStorage { _, _ in .stall("") }
            let client = try storage.client(limits: { limits in
                (limits.stall, limits.repetition) = (.milliseconds(300), .milliseconds(200))
            })
            #expect(throws: ObjectError.self) { try client.put("k", [1]) }
            #expect(storage.requests.count == 1)
        }
    }

    @Test(
        "A response that is lost after the request had its effect is no error of an upload",
        arguments: [ScriptedStorage.Reaction.end(""), .reset(""), .end("HTTP/1.1 200 OK\r\nContent-Le"), .stall("")])
    func lostResponse(_ reaction: ScriptedStorage.Reaction) async throws {
        try await onThread {
            let storage = try ScriptedStorage([reaction, .keep(Self.stored)])
            try storage.client(limits: { $0.stall = .milliseconds(300) }).put("k", Array("content".utf8))
            // A busy machine may stall the next request, too.
            #expect(storage.requests.count >= 2)
        }
    }

    @Test(
        "A download is repeated if the content is cut, stalls, or is not the requested range",
        arguments: [
            ScriptedStorage.Reaction.end("HTTP/1.1 206 P\r\nContent-Range: bytes 2-5/9\r\nContent-Length: 4\r\n\r\nXX"),
            .reset("HTTP/1.1 206 P\r\nContent-Range: bytes 2-5/9\r\nContent-Length: 4\r\n\r\nXX"),
            .stall("HTTP/1.1 206 P\r\nContent-Range: bytes 2-5/9\r\nContent-Length: 4\r\n\r\nXX"),
            .end("HTTP/1.1 206 P\r\nContent-Range: bytes 2-5/9\r\nConnection: close\r\n\r\nXX"),
            .stall("HTTP/1.1 206 P\r\nContent-Range: bytes 2-5/9\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nXX\r\n"),
            .keep(part("2-5/9", "XXX")), .keep(part("2-5/9", "XXXXX")), .keep(part("1-5/9", "XXXXX")),
            .keep(part("2-4/9", "XXX")), .keep(part("2-9/10", "XXXXXXXX")), .keep(part("2-5/5", "XXXX")),
            .keep(ScriptedStorage.response("206 Partial Content", [], "XXXX")),
            .keep(ScriptedStorage.response("206 Partial Content", ["Content-Range: bytes 2-5/*"], "XXXX")),
            .keep(ScriptedStorage.response("200 OK", [], "XXXXXXXXX")),
            .end("HTTP/1.1 206 P\r\nContent-Range: bytes 2-5/9\r\nConnection: close\r\n\r\nXXXXX"),
        ])
    func cutDownload(_ reaction: ScriptedStorage.Reaction) async throws {
        try await onThread {
            let storage = try ScriptedStorage([reaction, .keep(Self.part("2-5/9", "cdef"))])
            let client = try storage.client(limits: { $0.stall = .milliseconds(300) })
            #expect(try client.bytes("k", 2..<6) == Array("cdef".utf8))
            let ranges = storage.requests.map { $0.fields["range"] }
            #expect(ranges.count >= 2 && Set(ranges) == ["bytes=2-5"])
        }
    }

    @Test("Content without a length is not used: its end could be a cut")
    func noLength() async throws {
        try await onThread {
            let storage = try ScriptedStorage([
                .end("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nab"), .keep(Self.part("0-3/4", "abcd")),
            ])
            #expect(try storage.client().bytes("k", 0..<6) == Array("abcd".utf8))
        }
    }

    @Test("A range can end after the object, and a storage can ignore a range from the first byte")
    func accepted() async throws {
        try await onThread {
            let storage = try ScriptedStorage([
                .keep(Self.part("2-3/4", "cd")), .keep(ScriptedStorage.error("416 Range", "InvalidRange")),
                .keep(ScriptedStorage.response("200 OK", [], "abc")),
                .keep(ScriptedStorage.response("200 OK", [], "abcdefgh")),
                .keep(ScriptedStorage.error("404 Not Found", "NoSuchKey")),
                .keep(ScriptedStorage.error("404 Not Found", "NoSuchBucket")),
                .keep(ScriptedStorage.response("404 Not")),
            ])
            let client = try storage.client()
            #expect(try client.bytes("k", 2..<6) == Array("cd".utf8))
            #expect(try client.bytes("k", 4..<6) == [])
            #expect(try client.bytes("k", 0..<6) == Array("abc".utf8))
            #expect(try client.bytes("k", 0..<6) == Array("abcdef".utf8))
            #expect(throws: ObjectError.notFound) { try client.bytes("k", 0..<6) }
            #expect(throws: ObjectError.refused(status: 404, code: "NoSuchBucket", message: "")) {
                try client.bytes("k", 0..<6)
            }
            // A proxy can send such a response. It does not mean that the object is lost.
            #expect(throws: ObjectError.refused(status: 404, code: "", message: "")) { try client.bytes("k", 0..<6) }
            #expect(storage.requests.count == 7)
        }
    }

    @Test("An operation ends at its deadline, whatever the storage sends", arguments: ["", "HTTP/1.1 200 OK\r\n\r\n"])
    func deadline(_ head: String) async throws {
        try await onThread {
            let isFirst = Counter()
            let storage = try ScriptedStorage { _, _ in
                .trickle(isFirst.next() == 1 ? head + "HTTP/1.1 103 E\r\n\r\n" : "HTTP/1.1 103 E\r\n\r\n")
            }
            let client = try storage.client(limits: { $0.total = .milliseconds(400) })
            let start = SystemClock.monotonicNanoseconds()
            #expect {
                try client.list(prefix: "", after: nil, limit: 1)
            } throws: { error in
                if case ObjectError.unavailable = error { true } else { false }
            }
            #expect(SystemClock.monotonicNanoseconds() - start < 10_000_000_000)
        }
    }

    @Test("An operation ends at its deadline, although bytes move", arguments: [false, true])
    func slowNetwork(hasDeadline: Bool) async throws {
        try await onThread {
            let storage = try ScriptedStorage(pause: .milliseconds(100)) { _, _ in .keep(Self.stored) }
            let client = try storage.client(limits: { if !hasDeadline { $0.total = .milliseconds(400) } })
            let deadline = hasDeadline ? SystemClock.deadline(in: .milliseconds(400)) : .max
            // The storage would need 12 seconds.
            #expect(throws: ObjectError.self) {
                try client.put("k", [UInt8](repeating: 1, count: 8 << 20), until: deadline)
            }
            #expect(storage.requests.isEmpty)
        }
    }

    @Test(
        "An object is created only if none has the key; a storage that knows no such condition stores it anyway",
        arguments: [
            ("200 OK", true, 1), ("412 Precondition Failed", false, 1), ("409 Conflict", false, 1),
            ("501 Not Implemented", true, 2),
        ])
    func creation(_ status: String, _ isNew: Bool, _ requests: Int) async throws {
        try await onThread {
            let storage = try ScriptedStorage([.keep(ScriptedStorage.response(status)), .keep(Self.stored)])
            #expect(try storage.client().create("k", [1], until: .max) == isNew)
            #expect(storage.requests.count == requests)
            #expect(storage.requests.map { $0.fields["if-none-match"] } == Array(["*", nil].prefix(requests)))
        }
    }

    @Test("No connection is an error after some attempts")
    func unreachable() async throws {
        try await onThread {
            let port = try FixedPort.next()
            let pauses = Monitor<[Int64]>([])
            var limits = S3Client.Limits()
            limits.total = .seconds(2)
            let start = SystemClock.monotonicNanoseconds()
            let client = S3Client(
                try ObjectStorageURI(parsing: "s3://bucket?endpoint=http://127.0.0.1:\(port)"),
                ObjectCredentials(environment: ["AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": "S"]),
                limits: limits,
                pause: { time in
                    pauses.withLock { $0.append(time) }
                    SystemClock.pause(nanoseconds: time)
                })
            #expect {
                try client.delete(["k"])
            } throws: { error in
                "\(error)".contains("Connection refused, after")
            }
            #expect(pauses.withLock { $0.count } >= 2)
            #expect(SystemClock.monotonicNanoseconds() - start < 10_000_000_000)
        }
    }

    @Test("Connections are kept, and a kept connection that the storage has closed is no error")
    func connections() async throws {
        try await onThread {
            let storage = try ScriptedStorage { number, _ in number == 3 ? .end(Self.stored) : .keep(Self.stored) }
            let pauses = Monitor<[Int64]>([])
            let client = try storage.client(pauses: pauses)
            for _ in 0..<3 { try client.put("k", [1]) }
            #expect(storage.connections == 1)
            try client.put("k", [1])
            #expect(storage.connections == 2)
            #expect(storage.requests.count == 4)
            #expect(pauses.withLock { $0.isEmpty })
        }
    }

    @Test("Every attempt is signed with the present keys and time")
    func signedAgain() async throws {
        try await onThread {
            let directory = try TemporaryDirectory()
            @Sendable func write(_ identifier: String) throws -> String {
                try directory.file(
                    "c", Array("[default]\naws_access_key_id=\(identifier)\naws_secret_access_key=S\n".utf8))
            }
            let path = try write("FIRST")
            let storage = try ScriptedStorage { number, _ in
                if number == 1 { _ = try? write("SECOND-KEY") }
                return .keep(number == 1 ? Self.slowDown : Self.stored)
            }
            let time = Counter()
            let client = try storage.client(
                environment: ["AWS_SHARED_CREDENTIALS_FILE": path], clock: { 1_369_353_600 + Int64(time.next()) })
            try client.put("k", [1])
            let fields = storage.requests.map(\.fields)
            #expect(fields[0]["authorization"]?.contains("Credential=FIRST/20130524/us-east-1/s3/") == true)
            #expect(fields[1]["authorization"]?.contains("Credential=SECOND-KEY/") == true)
            #expect(fields[0]["x-amz-date"] != fields[1]["x-amz-date"])
        }
    }
}
