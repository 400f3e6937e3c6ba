import ConformanceKit
import HTTPSemantics
import ResumableUpload
import SystemCalls
import TestSupport
import Testing
import UploadStorage

@testable import TransferServer

/// A final response, however it came.
struct ServiceResponse: Sendable {
    let status: Int
    let fields: Fields
    let content: [UInt8]
}

/// The same service in two places: in this process without a socket, and behind a socket.
enum Transport: CaseIterable, Sendable {
    case inProcess, socket

    func start(_ limits: UploadLimits = UploadLimits(maxAge: 604_800)) throws -> any TestedService {
        switch self {
        case .inProcess: try InProcessService(limits)
        case .socket: try SocketService(limits)
        }
    }
}

/// A service with files below `/files` and a store of its own.
protocol TestedService {
    /// Sends a request with the content in pieces and returns the final response; nil if the service gives none.
    func exchange(_ method: HTTPSemantics.Method, _ target: String, _ fields: Fields, _ content: [[UInt8]]?) throws
        -> ServiceResponse?
}

extension TestedService {
    func exchange(
        _ method: HTTPSemantics.Method, _ target: String, _ fields: Fields = [:], _ content: [UInt8]? = nil
    ) throws -> ServiceResponse {
        try #require(try exchange(method, target, fields, content.map { [$0] }))
    }
}

/// What both have.
private struct ServiceStore {
    let directory: TemporaryDirectory
    let store: UploadStore
    let configuration: ServerConfiguration

    init(_ limits: UploadLimits) throws {
        directory = try TemporaryDirectory()
        store = try UploadStore.open(root: directory.path + "/data", configuration: StoreConfiguration(minFree: 0))
        configuration = ServerConfiguration(
            listeners: [.tcp(host: "127.0.0.1", port: 0)], limits: limits, allowsAnonymous: true, logLevel: .error)
    }

    var handlers: [(prefix: String, handler: any TargetHandler)] { [("files", FilesHandler(store: store))] }
}

/// Calls the service as the daemon does, without a socket. Interim responses are not sent.
final class InProcessService: TestedService {
    private let parts: ServiceStore
    private let service: TransferService
    let connections: ConnectionRegistry

    init(_ limits: UploadLimits) throws {
        parts = try ServiceStore(limits)
        connections = ConnectionRegistry(
            timeouts: ConnectionTimeouts(header: 60_000_000_000, idle: 60_000_000_000), capacity: 100)
        service = TransferService(
            configuration: parts.configuration, store: parts.store, routes: Routes(parts.handlers),
            log: ServerLog(format: .text, level: .error, sink: .none), connections: connections)
    }

    deinit { parts.store.close() }

    /// A request whose head the service has seen.
    final class Running {
        let entry: ConnectionEntry
        private let started: StartedExchange
        private let fields: Fields
        private var reply: Reply?
        private(set) var isDropped = false

        fileprivate init(_ service: TransferService, _ request: IncomingRequest) {
            entry = request.connection
            let dispatched = service.begin(request)
            started = dispatched.started
            fields = dispatched.fields
            advance(started.step)
        }

        private func advance(_ step: NextStep) {
            switch step {
            case .proceed: break
            case .reply(let reply): self.reply = reply
            case .drop: isDropped = true
            }
        }

        func receive(_ bytes: [UInt8]) {
            guard reply == nil, !isDropped else { return }
            bytes.withUnsafeBytes { advance(started.exchange.receive($0)) }
        }

        /// The end of the content.
        func finish() throws -> ServiceResponse? {
            if reply == nil, !isDropped { advance(started.exchange.finish()) }
            started.exchange.end(reply == nil ? .interrupted : .answered)
            guard let reply else { return nil }
            return ServiceResponse(
                status: Int(reply.status.rawValue), fields: reply.fields + fields, content: try content(of: reply))
        }

        /// The client has gone.
        func interrupt() { started.exchange.end(.interrupted) }

        private func content(of reply: Reply) throws -> [UInt8] {
            switch reply.content {
            case .bytes(let bytes): return bytes
            case .file(let file, let range):
                var content = [UInt8](repeating: 0, count: Int(range.count))
                var done = 0
                while done < content.count {
                    let count = try content.withUnsafeMutableBytes { buffer in
                        try file.read(
                            into: UnsafeMutableRawBufferPointer(rebasing: buffer[done...]),
                            at: range.lowerBound + Int64(done))
                    }
                    try #require(count > 0)
                    done += count
                }
                return content
            case .parts, .stream: throw TestFailure("content that is produced while it is sent")
            }
        }
    }

    /// Hands a head to the service.
    func begin(
        _ method: HTTPSemantics.Method, _ target: String, _ fields: Fields, _ framing: MessageFraming
    ) throws -> Running {
        let head = RequestHead(method: method, target: target, fields: fields + ["Host": "localhost"])
        let account = RequestAccount()
        account.begin(head)
        // No descriptor: to end the connection is to record that it has ended.
        let entry = ConnectionEntry(
            output: SocketOutput(descriptor: -1), peer: "127.0.0.1", client: service.client(ofPeer: "127.0.0.1"),
            credentials: nil, now: SystemClock.monotonicNanoseconds())
        let origin = service.origin(of: head.fields, peer: "127.0.0.1")
        return Running(
            service,
            IncomingRequest(
                id: RequestID(), head: head, framing: framing, target: try #require(RequestTarget(parsing: target)),
                origin: origin, connection: entry, interim: InterimChannel(output: nil, base: origin.base),
                account: account))
    }

    func exchange(
        _ method: HTTPSemantics.Method, _ target: String, _ fields: Fields, _ content: [[UInt8]]?
    ) throws -> ServiceResponse? {
        let length = content?.reduce(0) { $0 + Int64($1.count) }
        let running = try begin(method, target, fields, length.map { .length($0) } ?? .none)
        for piece in content ?? [] where !piece.isEmpty { running.receive(piece) }
        return try running.finish()
    }
}

/// A server on a port of its own, and the wire of the harness.
final class SocketService: TestedService {
    private final class Unobserved: WireObserver {
        func observe(_ response: ConformanceKit.Response, to request: ConformanceKit.Request, at endpoint: Endpoint) {}
        func observe(_ interim: InterimResponse, to request: ConformanceKit.Request, at endpoint: Endpoint) {}
        func observe(anomaly: String, in transcript: Transcript) { Issue.record("malformed response: \(anomaly)") }
    }

    private let parts: ServiceStore
    private let server: Server
    private let endpoint: Endpoint

    init(_ limits: UploadLimits) throws {
        parts = try ServiceStore(limits)
        server = Server(configuration: parts.configuration, store: parts.store, handlers: parts.handlers)
        try server.start()
        guard case .tcp(_, let port)? = server.addresses.first else { throw TestFailure("no address") }
        endpoint = try #require(Endpoint("http://127.0.0.1:\(port)/"))
    }

    deinit {
        server.stop()
        parts.store.close()
    }

    func exchange(
        _ method: HTTPSemantics.Method, _ target: String, _ fields: Fields, _ content: [[UInt8]]?
    ) throws -> ServiceResponse? {
        let connection = try RawConnection(
            endpoint, timeout: .seconds(60), transcript: Transcript(), observer: Unobserved())
        let request = ConformanceKit.Request(
            method.rawValue, target, fields.map { ($0.name, $0.value) },
            content.map { .bytes($0.flatMap { $0 }) } ?? .none)
        let response = try connection.exchange(request)
        return ServiceResponse(status: response.status, fields: response.fields, content: response.content)
    }
}

extension Fields {
    static func + (left: Fields, right: Fields) -> Fields {
        right.reduce(into: left) { $0.append($1.name, $1.value) }
    }
}
