import ConformanceKit
import FoundationEssentials
import HTTPSemantics
import SystemCalls
import TestSupport
import Testing

/// Tests that a gateway passes on messages while they arrive, without delay and with bounded memory, and that it ends a
/// request when the client disconnects.
@Suite("The gateway as a proxy: streaming", .serialized, .blocking)
struct GatewayProxyStreamingTests {
    // MARK: Without delay

    @Test("the first bytes of a request reach the origin before its end")
    func streamedRequest() throws {
        let origin = try ScriptedServer.origin { _, connection in try connection.respond() }
        try withGateway(to: origin) { server in
            let bytes = Payload.bytes(2000)
            let sized = try server.connect()
            try sized.send(Request("POST", "/app/sized", [], .declared(2000)))
            #expect(origin.awaitRequests(1))
            for count in [1, 999] {
                try sized.send(bytes[(count == 1 ? 0 : 1)..<(count == 1 ? 1 : 1000)])
                #expect(origin.awaitContent(count == 1 ? 1 : 1000, of: "/app/sized"))
            }
            #expect(origin.requests.last?.isComplete == false)
            try sized.send(bytes[1000...])
            #expect(try sized.readResponse().status == 200)
            #expect(origin.requests.last?.content == bytes)

            let chunked = try server.connect()
            try chunked.send(Request("POST", "/app/chunked", [], .openChunks))
            try chunked.sendChunk(Array(bytes[..<1000]))
            #expect(origin.awaitContent(1000, of: "/app/chunked"))
            try chunked.send("3e8\r\n")
            try chunked.send(bytes[1000..<1500])
            #expect(origin.awaitContent(1500, of: "/app/chunked"))
            #expect(origin.requests.last?.isComplete == false)
            try chunked.send(Array(bytes[1500...]) + Array("\r\n".utf8))
            try chunked.sendLastChunk()
            #expect(try chunked.readResponse().status == 200)
            #expect(origin.requests.last?.content == bytes)
        }
    }

    @Test(
        "the first bytes of a response reach the client before its end",
        arguments: ["Content-Length: 10", "Content-Length: 100005", "Transfer-Encoding: chunked", "Connection: close"])
    func streamedResponse(framing: String) throws {
        let signals = Signals()
        let origin = try ScriptedServer.origin { _, connection in
            let isChunked = framing.hasSuffix("chunked")
            try connection.send("HTTP/1.1 200 OK\r\n\(framing)\r\n\r\n")
            _ = signals.wait(for: "head")
            try connection.send(isChunked ? "5\r\nfirst\r\n" : "first")
            _ = signals.wait(for: "first")
            let remaining = String(repeating: "a", count: framing.hasSuffix("5") ? 100_000 : 5)
            try connection.send(isChunked ? "5\r\naaaaa\r\n0\r\n\r\n" : remaining)
            if framing.hasPrefix("Connection") { connection.endOutput() }
        }
        try withGateway(to: origin) { server in
            let connection = try server.connect()
            try connection.send(Request.get("/app/x"))
            let deadline = Deadline(in: .seconds(30))
            while !String(decoding: connection.received, as: UTF8.self).contains("\r\n\r\n") {
                #expect(try connection.receiveMore(until: deadline) == nil)
            }
            signals.send("head")
            while !String(decoding: connection.received, as: UTF8.self).contains("first") {
                #expect(try connection.receiveMore(until: deadline) == nil)
            }
            signals.send("first")
            let response = try connection.readResponse()
            #expect(response.text.hasPrefix("firstaaaaa"))
            #expect(response.contentSize == (framing.hasSuffix("5") ? 100_005 : 10))
        }
    }

    // MARK: Bounded memory

    /// The size of the content, in bytes.
    private static let large = 200 << 20
    /// The maximum growth of the resident memory, in KiB: far less than ``large``, and more than the buffers of one
    /// request.
    private static let maxGrowth = 48 << 10

    /// The largest resident memory of a process so far, in KiB.
    private static func peak(of server: ServerProcess) -> Int {
        let status = FileManager.default.contents(atPath: "/proc/\(server.process.identifier)/status") ?? Data()
        let line = String(decoding: status, as: UTF8.self).split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
        return line.flatMap { Int($0.split(whereSeparator: \.isWhitespace).dropFirst().first ?? "") } ?? 0
    }

    @Test(
        "a slow client and a fast origin: memory stays bounded",
        arguments: ["Content-Length: \(large)", "Transfer-Encoding: chunked", "Connection: close"])
    func slowClient(framing: String) throws {
        let sent = Counter()
        let origin = try ScriptedServer.origin { request, connection in
            guard request.path == "/app/large" else { return try connection.respond() }
            let part = [UInt8](repeating: 0x61, count: 1 << 20)
            let isChunked = framing.hasSuffix("chunked")
            try connection.send("HTTP/1.1 200 OK\r\n\(framing)\r\n\r\n")
            for _ in 0..<(Self.large >> 20) {
                try connection.send(isChunked ? ConformanceKit.Request.chunk(part) : part)
                sent.next()
            }
            if isChunked { try connection.send("0\r\n\r\n") }
            if framing.hasPrefix("Connection") { connection.endOutput() }
        }
        try withGateway(to: origin) { server in
            for _ in 0..<4 { #expect(try server.exchange(.get("/app/small")).status == 200) }
            let before = Self.peak(of: server)
            let client = try LoopbackListener.connect(to: server.port, receiveBuffer: 64 << 10)
            let input = PeerInput(client)
            try Self.send("GET /app/large HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", on: client)
            _ = try input.head()
            // The client reads nothing more until the origin cannot send more.
            #expect(Self.awaitStop(of: sent) < Self.large >> 20)
            #expect(Self.peak(of: server) - before < Self.maxGrowth)
            var received = 0
            while received < Self.large, let part = try? input.part(atMost: 20_000) { received += part.count }
            #expect(received >= Self.large)
            #expect(Self.peak(of: server) - before < Self.maxGrowth)
        }
    }

    @Test("a fast client and a slow origin: memory stays bounded", arguments: [true, false])
    func slowOrigin(isChunked: Bool) throws {
        let signals = Signals()
        let origin = try ScriptedServer.origin { request, connection in
            if request.path == "/app/large" {
                #expect(signals.wait(for: "blocked", within: .seconds(60)))
                var count = 0
                while let part = try connection.nextPart(atMost: 20_000) { count += part.count }
                #expect(count == Self.large)
            }
            try connection.respond()
        }
        try withGateway(to: origin) { server in
            for _ in 0..<4 { #expect(try server.exchange(.get("/app/small")).status == 200) }
            let before = Self.peak(of: server)
            let connection = try server.connect()
            try connection.send(
                Request("POST", "/app/large", [], isChunked ? .openChunks : .declared(Int64(Self.large))))
            let part = [UInt8](repeating: 0x61, count: 1 << 20)
            let sent = Counter()
            let watcher = try WorkerThread(name: "watcher") {
                #expect(Self.awaitStop(of: sent) < Self.large >> 20)
                signals.send("blocked")
            }
            for _ in 0..<(Self.large >> 20) {
                try connection.send(isChunked ? Request.chunk(part) : part)
                sent.next()
            }
            if isChunked { try connection.sendLastChunk() }
            watcher.join()
            #expect(try connection.readResponse().status == 200)
            #expect(Self.peak(of: server) - before < Self.maxGrowth)
        }
    }

    @Test("a large refusal that arrives before the end of the request is passed on with bounded memory")
    func largeEarlyRefusal() throws {
        let origin = try ScriptedServer.origin { request, connection in
            guard request.path == "/app/large" else { return try connection.respond() }
            let part = [UInt8](repeating: 0x61, count: 1 << 20)
            try connection.send("HTTP/1.1 403 Forbidden\r\nContent-Length: \(Self.large)\r\n\r\n")
            for _ in 0..<(Self.large >> 20) { try connection.send(part) }
        }
        try withGateway(to: origin) { server in
            for _ in 0..<4 { #expect(try server.exchange(.get("/app/small")).status == 200) }
            let before = Self.peak(of: server)
            let connection = try server.connect()
            try connection.send(Request("POST", "/app/large", [], .declared(20 << 20)))
            for _ in 0..<20 { try connection.send([UInt8](repeating: 0x61, count: 1 << 20)) }
            connection.contentBounds = (kept: 0, total: .max)
            let response = try connection.readResponse()
            #expect(response.status == 403 && response.contentSize == Int64(Self.large))
            #expect(Self.peak(of: server) - before < Self.maxGrowth)
        }
    }

    /// Waits until a counter has not changed for half a second, and returns its value.
    private static func awaitStop(of counter: Counter) -> Int {
        var last = (value: -1, at: ContinuousClock.now)
        return pollUntil(within: .seconds(60)) {
            let value = counter.value
            if value != last.value { last = (value, .now) }
            return value > 0 && .now - last.at > .milliseconds(500) ? value : nil
        } ?? .max
    }

    private static func send(_ text: String, on connection: FileDescriptor) throws {
        let socket = ConnectedSocket(owning: try connection.duplicate())
        _ = try socket.send(Array(text.utf8)[...], until: Deadline(in: .seconds(30)).nanoseconds)
    }

    // MARK: Cancellation

    @Test(
        "when the client disconnects, the connection to the origin is closed, in every phase", arguments: [true, false])
    func cancellation(byReset: Bool) throws {
        let signals = Signals()
        let origin = try ScriptedServer.origin { request, connection in
            defer { signals.send("over " + request.path) }
            switch request.path {
            case "/app/content", "/app/chunks":
                do {
                    try connection.discardContent()
                    Issue.record("the content seems complete")
                } catch { signals.send("closed " + request.path) }
                throw WireFailure.closed("")
            case "/app/waiting", "/app/answered": try connection.discardContent()
            case "/app/head": try connection.send("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
            case "/app/response": try connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
            case "/app/fast":
                try connection.send("HTTP/1.1 200 OK\r\n\r\n")
                do {
                    while true { try connection.send([UInt8](repeating: 0x61, count: 1 << 16)) }
                } catch { signals.send("closed " + request.path) }
                throw WireFailure.closed("")
            default: break
            }
            signals.send("ready " + request.path)
            if connection.awaitClosing(within: .seconds(20)) { signals.send("closed " + request.path) }
            connection.close()
        }
        try withGateway(to: origin) { server in
            for path in [
                "/app/content", "/app/chunks", "/app/waiting", "/app/answered", "/app/head", "/app/response",
                "/app/fast",
            ] {
                let connection = try server.connect()
                switch path {
                case "/app/content":
                    try connection.send(Request("POST", path, [], .declared(100_000)))
                    try connection.send(Payload.bytes(50_000))
                    #expect(origin.awaitContent(50_000, of: path))
                case "/app/chunks":
                    try connection.send(Request("POST", path, [], .openChunks))
                    try connection.sendChunk(Payload.bytes(50_000))
                    #expect(origin.awaitContent(50_000, of: path))
                case "/app/waiting":
                    try connection.send(Request.get(path))
                    #expect(signals.wait(for: "ready " + path))
                case "/app/answered":
                    try connection.send(Request("POST", path, [], .bytes(Payload.bytes(50_000))))
                    #expect(signals.wait(for: "ready " + path))
                default:
                    try connection.send(Request.get(path))
                    // The client receives the beginning of the response.
                    while !connection.received.starts(with: Array("HTTP/1.1 200".utf8)) {
                        #expect(try connection.receiveMore(until: Deadline(in: .seconds(30))) == nil)
                    }
                }
                if byReset { connection.reset() } else { connection.close() }
                #expect(signals.wait(for: "closed " + path, within: .seconds(5)), "\(path)")
            }
            #expect(origin.awaitNoConnection())
        }
    }

    // MARK: Early responses

    @Test("a refusal before the end of the content is passed on, and ends the request")
    func earlyRefusal() throws {
        let origin = try ScriptedServer.origin { request, connection in
            switch request.path {
            case "/app/413": try connection.send("HTTP/1.1 413 Too\r\nX-A: 1\r\nContent-Length: 5\r\n\r\nlarge")
            case "/app/503":
                try connection.send("HTTP/1.1 503 No\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nlarge\r\n0\r\n\r\n")
            default:
                try connection.discardContent(atMost: 100_000)
                try connection.send("HTTP/1.1 403 No\r\nX-A: 1\r\nConnection: close\r\n\r\nlarge")
                connection.endOutput()
            }
        }
        try withGateway(to: origin) { server in
            for path in ["/app/413", "/app/503", "/app/403"] {
                for isChunked in [false, true] {
                    let bytes = Payload.bytes(20 << 20)
                    let content: Request.Content =
                        isChunked
                        ? .chunks((0..<20).map { Array(bytes[($0 << 20)..<(($0 + 1) << 20)]) }) : .bytes(bytes)
                    let response = try server.exchange(Request("POST", path, [], content))
                    #expect(path.hasSuffix("\(response.status)") && response.text == "large", "\(path): \(response)")
                    #expect(response.value("X-A") == (path == "/app/503" ? nil : "1"))
                }
            }
            #expect(origin.malformed.isEmpty)
        }
    }

    @Test("a complete response before the end of the content is passed on; a request that needs full duplex gets 501")
    func earlySuccess() throws {
        let origin = try ScriptedServer.origin { request, connection in
            switch request.path {
            case "/app/length": try connection.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nearly")
            case "/app/redirect":
                try connection.send("HTTP/1.1 303 See Other\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n")
            default:
                try connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                while let part = try connection.nextPart() {
                    try connection.send(ConformanceKit.Request.chunk(Array(part)))
                }
                try connection.send("0\r\n\r\n")
            }
        }
        try withGateway(to: origin) { server in
            for (path, status) in [("/app/length", 200), ("/app/redirect", 303), ("/app/echo", 501)] {
                let response = try server.exchange(Request("POST", path, [], .bytes(Payload.bytes(20 << 20))))
                #expect(response.status == status, "\(path): \(response)")
                switch path {
                case "/app/length": #expect(response.text == "early")
                case "/app/redirect": #expect(response.value("Location") == "/x")
                default: #expect(response.problem?.code == "full-duplex-unsupported")
                }
            }
        }
    }

    // MARK: Repeated requests

    @Test("a request that is not idempotent is sent once, even if its connection turns out to be closed")
    func neverTwice() throws {
        let origin = try ScriptedServer.origin { request, connection in
            if request.path == "/app/warm" { return try connection.respond() }
            try connection.discardContent()
            connection.close()
        }
        try withGateway(to: origin) { server in
            var number = 0
            for method in ["POST", "PATCH", "LOCK"] {
                for content in [Request.Content.none, .bytes([1, 2, 3]), .chunks([[1], [2]])] {
                    number += 1
                    // Each thread of the transport keeps a connection.
                    for _ in 0..<2 { #expect(try server.exchange(.get("/app/warm")).status == 200) }
                    let response = try server.exchange(Request(method, "/app/\(number)", [], content))
                    #expect(response.status == 502 && response.problem?.code == "origin-connection-lost", "\(response)")
                    #expect(origin.count(of: "/app/\(number)") == 1, "\(method)")
                }
            }
            let isReused = origin.requests.contains { $0.path == "/app/1" && $0.connection <= 2 }
            #expect(isReused, "the request was sent on a kept connection")
            // An idempotent request may be repeated, but not for ever.
            for _ in 0..<2 { #expect(try server.exchange(.get("/app/warm")).status == 200) }
            #expect(try server.exchange(.get("/app/repeated")).status == 502)
            #expect((1...2).contains(origin.count(of: "/app/repeated")))
        }
    }

    @Test("a connection that the origin has closed while it was idle is not used")
    func closedIdleConnection() throws {
        let origin = try ScriptedServer.origin { request, connection in
            try connection.respond()
            if request.path == "/app/warm" { connection.close() }
        }
        try withGateway(to: origin) { server in
            for _ in 0..<6 {
                #expect(try server.exchange(.get("/app/warm")).status == 200)
                #expect(try server.exchange(.get("/app/warm")).status == 200)
                #expect(origin.awaitNoConnection())
                let response = try server.exchange(Request("POST", "/app/post", [], .bytes([1])))
                #expect(response.status == 200 && response.text == "ok", "\(response)")
            }
            #expect(origin.count(of: "/app/post") == 6)
        }
    }
}
