import HTTPSemantics
import SystemCalls
import TLS

/// Verifies that libmicrohttpd receives through ``AcceptedConnection``. The check starts a daemon and sends two
/// requests to it in one write. The daemon handles them correctly only if each of the replaced functions is called.
///
/// Whether these functions are called depends on how the program is linked and on the version of libmicrohttpd, so the
/// check runs at each start.
enum ReceiveFilterCheck {
    private static let requests = """
        PUT /first HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n\
        5;extension\r\nhello\r\n0\r\n\r\n\
        PUT /second HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nConnection: close\r\n\r\nagain
        """
    private static let expected = ["/first hello", "/second again"]
    /// The maximum time of one attempt, in nanoseconds.
    private static let timeout: Int64 = 5_000_000_000

    /// - Parameter credentials: the credentials of the server; if not `nil`, a connection with TLS is tested, too.
    /// - Returns: a description of the failure; `nil` if the filter is effective.
    /// - Throws: `Errno` if the system cannot create a thread for the daemon.
    static func failure(credentials: CurrentCredentials?) throws(Errno) -> String? {
        if let reason = try failureOfConnection(nil) { return reason }
        guard let credentials else { return nil }
        return try failureOfConnection(credentials)
    }

    /// An attempt also fails if libmicrohttpd cannot create a thread, so only a second failure counts.
    private static func failureOfConnection(_ credentials: CurrentCredentials?) throws(Errno) -> String? {
        try failureOnce(credentials) == nil ? nil : failureOnce(credentials)
    }

    private static func failureOnce(_ credentials: CurrentCredentials?) throws(Errno) -> String? {
        let service = Recorder()
        let registry = ConnectionRegistry(
            timeouts: ConnectionTimeouts(header: timeout, idle: timeout), capacity: 1)
        let daemon = MicroHTTPDaemon(service: service, registry: registry, credentials: credentials)
        try daemon.start(on: nil, options: MicroHTTPDaemon.Options(maxConnections: 1))
        defer { daemon.stop() }
        do {
            let deadline = SystemClock.monotonicNanoseconds() + timeout
            let (client, server) = try ConnectedSocket.pair()
            try daemon.add(server)
            try sendRequests(client, isSecure: credentials != nil, until: deadline)
        } catch {
            return switch service.received.count {
            case 0: "the server did not receive the test request that it sent to itself (\(error))"
            case 1: "the server did not receive the second of two test requests that it sent to itself (\(error))"
            default: "the server did not close the connection of its two test requests (\(error))"
            }
        }
        let received = service.received
        return received == expected ? nil : "the server sent itself two test requests, but received \(received)"
    }

    private static func sendRequests(_ client: ConnectedSocket, isSecure: Bool, until deadline: Int64) throws {
        var bytes = Array(requests.utf8)[...]
        var buffer = [UInt8](repeating: 0, count: 4096)
        if isSecure {
            let session = try TLSClientConnection(
                over: client, to: "localhost", trusting: .anyCertificate, until: deadline)
            while !bytes.isEmpty { bytes = try bytes.dropFirst(session.send(bytes, until: deadline)) }
            while try buffer.withUnsafeMutableBytes({ try session.receive(into: $0, until: deadline) }) > 0 {}
        } else {
            while !bytes.isEmpty { bytes = try bytes.dropFirst(client.send(bytes, until: deadline)) }
            while try buffer.withUnsafeMutableBytes({ try client.receive(into: $0, until: deadline) }) > 0 {}
        }
    }

    private final class Recorder: MinimalRequestService {
        private let requests = Monitor<[String]>([])

        var received: [String] { requests.withLock { $0 } }

        func begin(_ request: RequestContext, for target: RequestTarget) -> RequestStep {
            .receive(RecordedExchange(path: target.path) { text in self.requests.withLock { $0.append(text) } })
        }
    }

    private final class RecordedExchange: Exchange {
        private let path: String
        private var content: [UInt8] = []
        private let record: (String) -> Void

        init(path: String, record: @escaping (String) -> Void) { (self.path, self.record) = (path, record) }

        func receive(_ bytes: UnsafeRawBufferPointer) -> RequestStep? {
            content += bytes
            return nil
        }

        func finish() -> RequestStep {
            record("\(path) \(String(decoding: content, as: UTF8.self))")
            return .respond(Response(status: 204))
        }

        func end(_ end: RequestEnd) {}
    }
}

/// A service for tests of the daemon. Its defaults accept every request and ignore all reports, so a type needs only
/// `begin(_:for:)`.
protocol MinimalRequestService: RequestService {}

extension MinimalRequestService {
    func origin(of fields: Fields, peer: String?) -> RequestOrigin { RequestOrigin(client: peer) }
    func client(ofPeer peer: String?) -> ConnectionClient { ConnectionClient(peer, isExempt: true) }
    func client(of fields: Fields, origin: RequestOrigin) -> ConnectionClient? { nil }
    func responseFields(for fields: Fields, isSecure: Bool) -> Fields { [:] }
    func record(_ summary: RequestSummary) {}
    func contentFailed(_ error: any Error, request: RequestID) {}
    func reachedConnectionLimit(closed: Int, isRejected: Bool, largest: (client: ConnectionClient, count: Int)?) {}
}
