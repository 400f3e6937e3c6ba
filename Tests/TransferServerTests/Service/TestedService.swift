import ConformanceKit
import HTTPSemantics
import ResumableUpload
import SystemCalls
import TestSupport
import Testing
import UploadStorage

@testable import TransferServer

/// A final response of a service in this process or behind a socket.
struct ServiceResponse: Sendable {
    let status: Int
    let fields: Fields
    let content: [UInt8]
}

/// How the tests reach the service: in this process without a socket, or over a socket.
enum Transport: CaseIterable, Sendable {
    case inProcess, socket

    func start(_ limits: UploadLimits = UploadLimits(maxAge: 604_800)) throws -> any TestedService {
        switch self {
        case .inProcess: try InProcessService(limits)
        case .socket: try SocketService(limits)
        }
    }
}

/// A service with files below `/files` and its own store.
protocol TestedService {
    /// Sends a request with the content in pieces and returns the final response; `nil` if the service sends none.
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

/// The store, the directory and the configuration of a tested service.
private struct ServiceStore {
    let directory: TemporaryDirectory
    let store: UploadStore
    let configuration: ServerConfiguration

    init(_ limits: UploadLimits, store: UploadStore? = nil) throws {
        directory = try TemporaryDirectory()
        self.store =
            try store ?? UploadStore.open(root: directory.path + "/data", configuration: StoreConfiguration(minFree: 0))
        configuration = ServerConfiguration(
            listeners: [.tcp(host: "127.0.0.1", port: 0)], limits: limits, allowsAnonymous: true, logLevel: .error)
    }

    var handlers: [(prefix: String, handler: any TargetHandler)] { [("files", FilesHandler(store: store))] }
}

/// Calls the service as the daemon does, without a socket. Interim responses are recorded.
final class InProcessService: TestedService {
    private let parts: ServiceStore
    private let service: TransferService
    let connections: ConnectionRegistry

    /// - Parameter store: a store to use instead of one in files.
    init(_ limits: UploadLimits, store: UploadStore? = nil) throws {
        parts = try ServiceStore(limits, store: store)
        connections = ConnectionRegistry(
            timeouts: ConnectionTimeouts(header: 60_000_000_000, idle: 60_000_000_000), capacity: 100)
        service = TransferService(
            configuration: parts.configuration, store: parts.store, routes: Routes(parts.handlers),
            log: ServerLog(format: .text, level: .error, sink: .none), connections: connections)
    }

    deinit { parts.store.close() }

    /// A request whose head the service has received.
    final class Running {
        private let request: RequestContext
        private var exchange: (any Exchange)?
        private var response: HTTPSemantics.Response?
        private(set) var isDropped = false
        private let interim: Monitor<[String]>

        /// The heads of the interim responses so far.
        var interimResponses: [String] { interim.withLock { $0 } }

        fileprivate init(
            _ service: TransferService, _ request: RequestContext, for target: RequestTarget,
            _ interim: Monitor<[String]>
        ) {
            self.request = request
            self.interim = interim
            switch service.begin(request, for: target) {
            case .receive(let exchange): self.exchange = exchange
            case .respond(let response): self.response = response
            case .drop: isDropped = true
            }
        }

        private func advance(_ step: NextStep) {
            switch step {
            case .proceed: break
            case .respond(let response): self.response = response
            case .drop: isDropped = true
            }
        }

        func receive(_ bytes: [UInt8]) {
            guard let exchange, response == nil, !isDropped else { return }
            bytes.withUnsafeBytes { advance(exchange.receive($0)) }
        }

        /// Ends the content.
        func finish() throws -> ServiceResponse? {
            if let exchange, response == nil, !isDropped { advance(exchange.finish()) }
            exchange?.end(response == nil ? .interrupted : .answered)
            guard let response = try response?.loaded(limit: 100_000_000) else { return nil }
            return ServiceResponse(
                status: Int(response.status.rawValue), fields: response.fields + request.responseFields,
                content: response.content.bytes ?? [])
        }

        /// Reports that the client has disconnected.
        func interrupt() { exchange?.end(.interrupted) }
    }

    /// Begins a request with this head.
    func begin(
        _ method: HTTPSemantics.Method, _ target: String, _ fields: Fields, _ framing: MessageFraming
    ) throws -> Running {
        let head = RequestHead(method: method, target: target, fields: fields + ["Host": "localhost"])
        // The connection has no descriptor, so ending it only records the end.
        let entry = ConnectionEntry(
            output: SocketOutput(descriptor: -1), peer: "127.0.0.1", client: service.client(ofPeer: "127.0.0.1"),
            credentials: nil, now: SystemClock.monotonicNanoseconds())
        let request = RequestContext(ReceivedRequest(head), on: entry)
        request.framing = framing
        request.origin = service.origin(of: head.fields, peer: "127.0.0.1")
        let interim = Monitor<[String]>([])
        request.interim = InterimChannel(
            send: { bytes, _, _ in
                interim.withLock { $0.append(String(decoding: bytes, as: UTF8.self)) }
                return .sent
            }, base: request.origin.base)
        request.responseFields = service.responseFields(for: head.fields, isSecure: request.isSecure)
        return Running(service, request, for: try #require(RequestTarget(parsing: target)), interim)
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

/// A server with its own port. The requests are sent with the client of the conformance harness.
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
        try server.startBlocking()
        guard case .tcp(_, let port)? = server.addresses.first else { throw TestFailure("no address") }
        endpoint = try #require(Endpoint("http://127.0.0.1:\(port)/"))
    }

    deinit {
        server.stopBlocking()
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
