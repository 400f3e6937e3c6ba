import ConformanceKit
import HTTPSemantics
import SystemCalls
import TestSupport
import Testing

@testable import HTTPTransport

/// The requests that the thread of a connection performs: which connections they use, and TLS.
@Suite("Gateway: the connections of the blocking transport", .blocking)
struct BlockingTransportTests {
    private func request(_ method: HTTPSemantics.Method, _ url: String, _ content: [UInt8]? = nil) -> TransportRequest {
        TransportRequest(
            uri: url, method: method, fields: [:],
            content: content.map { .range(from: 0, count: Int64($0.count)) } ?? .none,
            source: content.map { MemorySource($0) }, stallTimeout: .seconds(60),
            settings: TransportSettings(proxy: "", httpVersion: .automatic, connectTimeout: .seconds(30)),
            receive: { _ in .abort })
    }

    /// Continues an exchange to its end.
    private func finish(
        _ exchange: BlockingExchange, sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> (result: TransportResult, content: [UInt8]) {
        let deadline = Deadline(in: .seconds(60)).nanoseconds
        var content: [UInt8] = []
        while exchange.result == nil, exchange.step(until: deadline) { content += exchange.readAll() }
        content += exchange.readAll()
        return (try #require(exchange.result, "no end within a minute", sourceLocation: sourceLocation), content)
    }

    private func expectOK(
        _ exchange: BlockingExchange, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let (result, content) = try finish(exchange, sourceLocation: sourceLocation)
        #expect(result.failure == nil && result.head?.status == 200, "\(result)", sourceLocation: sourceLocation)
        #expect(content == Array("ok".utf8), sourceLocation: sourceLocation)
    }

    /// An origin that responds to requests when the hold is released.
    private func origin(_ hold: Monitor<Hold>) throws -> ScriptedServer {
        try ScriptedServer.origin { _, connection in
            hold.withLock { $0 }.wait()
            try connection.respond()
        }
    }

    /// Performs `count` requests at the same time.
    private func performTogether(
        _ count: Int, _ transport: BlockingTransport, _ origin: ScriptedServer, _ hold: Monitor<Hold>,
        adjust: (inout TransportRequest) -> Void = { _ in }
    ) throws {
        hold.withLock { $0 = Hold() }
        let before = origin.requests.count
        let exchanges = (0..<count).map { _ in
            var request = request(.get, origin.url + "/")
            adjust(&request)
            return transport.start(request)
        }
        #expect(
            eventually(within: .seconds(30)) {
                for exchange in exchanges { exchange.step(until: SystemClock.monotonicNanoseconds()) }
                return origin.requests.count == before + count
            })
        hold.withLock { $0 }.release()
        for exchange in exchanges { try expectOK(exchange) }
    }

    /// Waits until the origin has `count` open connections.
    private func expectOpen(
        _ origin: ScriptedServer, _ count: Int, sourceLocation: SourceLocation = #_sourceLocation
    ) {
        #expect(
            eventually(within: .seconds(30)) { origin.openConnections == count },
            "\(origin.openConnections) connections", sourceLocation: sourceLocation)
    }

    // MARK: The connections that are kept

    @Test("requests one after the other use one connection")
    func kept() throws {
        let transport = BlockingTransport()
        let origin = try ScriptedServer.origin { _, connection in try connection.respond() }
        for _ in 0..<20 { try expectOK(transport.start(request(.get, origin.url + "/"))) }
        #expect(origin.requests.count == 20 && origin.connections == 1)
        withExtendedLifetime(transport) {}
    }

    @Test("at most the maximum of unused connections is kept, and later requests use them before they make new ones")
    func maximum() throws {
        let transport = BlockingTransport(maxIdle: 3)
        let hold = Monitor(Hold())
        let origin = try origin(hold)
        try performTogether(8, transport, origin, hold)
        #expect(origin.connections == 8)
        expectOpen(origin, 3)
        try performTogether(4, transport, origin, hold)
        #expect(origin.connections == 9)
        expectOpen(origin, 3)
        withExtendedLifetime(transport) {}
    }

    @Test("a connection that was not used for the maximum time is closed at the end of another request")
    func expiry() throws {
        let transport = BlockingTransport(maxIdleTime: .milliseconds(500))
        let hold = Monitor(Hold())
        let origin = try origin(hold)
        try performTogether(4, transport, origin, hold)
        // Each request uses the connection that was used last, so the others expire.
        let haveExpired: Bool? = try pollUntil(within: .seconds(120)) {
            try expectOK(transport.start(request(.get, origin.url + "/")))
            return origin.openConnections == 1 ? true : nil
        }
        #expect(haveExpired == true && origin.connections == 4)
        withExtendedLifetime(transport) {}
    }

    @Test("a request that needs a new connection uses no kept one, and keeps none")
    func separate() throws {
        let transport = BlockingTransport()
        let hold = Monitor(Hold())
        let origin = try origin(hold)
        try performTogether(2, transport, origin, hold) { $0.isNewConnectionNeeded = true }
        expectOpen(origin, 0)
        try expectOK(transport.start(request(.get, origin.url + "/")))
        #expect(origin.connections == 3)
        var separate = request(.get, origin.url + "/")
        separate.isNewConnectionNeeded = true
        try expectOK(transport.start(separate))
        #expect(origin.connections == 4)
        expectOpen(origin, 1)
        withExtendedLifetime(transport) {}
    }

    @Test("a kept connection that the server has closed is not used, even by a request that cannot be repeated")
    func closed() throws {
        let transport = BlockingTransport()
        let origin = try ScriptedServer.origin { _, connection in
            try connection.respond()
            connection.endOutput()
        }
        for count in 1...3 {
            var request = request(.post, origin.url + "/", Array("content".utf8))
            request.isRepeatable = false
            try expectOK(transport.start(request))
            #expect(origin.connections == count && origin.requests.count == count)
            #expect(origin.awaitNoConnection())
        }
        withExtendedLifetime(transport) {}
    }

    @Test("a canceled exchange closes its connection")
    func canceled() throws {
        let transport = BlockingTransport()
        let hold = Hold()
        defer { hold.release() }
        let origin = try origin(Monitor(hold))
        let exchange = transport.start(request(.get, origin.url + "/"))
        let hasArrived: Bool? = pollUntil(within: .seconds(30)) {
            exchange.step(until: SystemClock.monotonicNanoseconds())
            return origin.requests.isEmpty ? nil : true
        }
        #expect(hasArrived == true)
        exchange.cancel()
        #expect(exchange.result?.failure == .canceled && exchange.isPossiblySent)
        hold.release()
        #expect(origin.awaitNoConnection())
        try expectOK(transport.start(request(.get, origin.url + "/")))
        #expect(origin.connections == 2)
    }

    // MARK: TLS

    @Test(
        "https: content in both directions on one connection; the certificate has to be trusted and valid for the host")
    func secure() throws {
        let identity = try SelfSignedCertificate()
        let server = try ServerProcess(["--tls-cert", identity.certificate, "--tls-key", identity.key])
        let proxy = try FaultProxy(to: server.port) { nil }
        let url = "https://127.0.0.1:\(proxy.port)/files/x"
        let content = Payload.bytes(3_000_000)
        let transport = BlockingTransport()
        var put = request(.put, url, content)
        var get = request(.get, url)
        (put.settings.caFile, get.settings.caFile) = (FilePath(identity.certificate), FilePath(identity.certificate))
        for status in [201, 204] as [Status] {
            let stored = try finish(transport.start(put)).result
            #expect(stored.failure == nil && stored.head?.status == status, "\(stored)")
            let (read, bytes) = try finish(transport.start(get))
            #expect(read.failure == nil && read.isContentComplete && bytes == content, "\(read)")
        }
        #expect(proxy.connections == 1)
        #expect(proxy.bytesToServer > 6_000_000 && proxy.bytesToClient > 6_000_000)

        // Another transport, because all requests of one have the same settings.
        get.settings.caFile = FilePath(try SelfSignedCertificate().certificate)
        var named = get
        named.uri = "https://localhost:\(proxy.port)/files/x"
        named.settings.caFile = FilePath(identity.certificate)
        for refused in [get, named] {
            let exchange = BlockingTransport().start(refused)
            let (result, bytes) = try finish(exchange)
            guard case .tls? = result.failure else {
                Issue.record("\(result)")
                continue
            }
            #expect(result.head == nil && bytes.isEmpty && !exchange.isPossiblySent)
        }
    }
}
