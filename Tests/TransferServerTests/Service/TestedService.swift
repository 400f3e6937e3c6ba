import HTTPSemantics
import HTTPTestSupport
import ResumableUpload
import SystemCalls
import TestSupport
import Testing
import UploadStorage

@testable import ConformanceKit
@testable import TransferServer

/// The way in which tests send requests to the service: in this process without a socket, or over a socket.
enum Transport: CaseIterable, Sendable {
    case inProcess, socket

    func start(_ settings: ServiceSettings = ServiceSettings()) throws -> any TestedService {
        switch self {
        case .inProcess: try InProcessService(settings)
        case .socket: try SocketService(settings)
        }
    }
}

/// The settings of a service, which `onward serve` reads from its options.
struct ServiceSettings {
    var server = ServerConfiguration(listeners: [.tcp(host: "127.0.0.1", port: 0)])
    var store = StoreConfiguration(minFree: 0)
    var shouldShowActiveTypes = false
    var shouldRejectFormData = false

    init() { server.hasPage = true }

    static func with(_ change: (inout ServiceSettings) -> Void) -> ServiceSettings {
        var settings = ServiceSettings()
        change(&settings)
        return settings
    }

    static func tokens(_ text: String, publicRead: Bool = false) throws -> ServiceSettings {
        let authorizer = TokenAuthorizer(try TokenList(parsing: text), isPublicReadingAllowed: publicRead)
        return .with { $0.server.authorizer = authorizer }
    }
}

/// A service with files below `/files` and its own data directory.
protocol TestedService: TestedServer {
    /// Contains the data directory.
    var directory: TemporaryDirectory { get }
    /// The default value of `Host`.
    var authority: String { get }
}

extension TestedService {
    var data: ServerData { ServerData(directory.path + "/data") }
}

/// Runs `body` with a service.
func withService(
    _ transport: Transport = .inProcess, settings: ServiceSettings = ServiceSettings(),
    _ body: (any TestedService) throws -> Void
) throws {
    try body(transport.start(settings))
}

/// Runs `body` with a service behind a socket.
func withSocket(settings: ServiceSettings = ServiceSettings(), _ body: (SocketService) throws -> Void) throws {
    try body(SocketService(settings))
}

/// The store and the handlers of a tested service.
private struct ServiceStore {
    let directory: TemporaryDirectory
    let store: UploadStore
    let handlers: [(prefix: String, handler: any TargetHandler)]

    init(_ settings: ServiceSettings, store: UploadStore? = nil) throws {
        directory = try TemporaryDirectory()
        self.store =
            try store ?? UploadStore.open(root: directory.path + "/data", configuration: settings.store)
        let files = FilesHandler(
            store: self.store, shouldShowActiveTypes: settings.shouldShowActiveTypes,
            resourcePolicy: settings.server.corsOrigins.contains("*") ? .crossOrigin : .sameOrigin,
            shouldRejectFormData: settings.shouldRejectFormData)
        handlers = [("files", files)]
    }
}

/// Calls the service as the daemon does, without a socket. Interim responses are recorded.
final class InProcessService: TestedService {
    private let parts: ServiceStore
    private let service: TransferService
    let connections: ConnectionRegistry
    let authority = "localhost"

    var directory: TemporaryDirectory { parts.directory }

    /// - Parameter store: a store to use instead of one in files.
    init(_ settings: ServiceSettings = ServiceSettings(), store: UploadStore? = nil) throws {
        parts = try ServiceStore(settings, store: store)
        connections = ConnectionRegistry(
            timeouts: ConnectionTimeouts(header: 60_000_000_000, idle: 60_000_000_000), capacity: 100)
        service = TransferService(
            configuration: settings.server, store: parts.store, routes: Routes(parts.handlers),
            log: ServerLog(format: .text, level: .error, sink: .none), connections: connections)
    }

    deinit { parts.store.close() }

    /// A request whose head the service has received.
    final class Running {
        private let request: RequestContext
        private var exchange: (any Exchange)?
        private var response: HTTPSemantics.Response?
        private(set) var isDropped = false
        private let interim: Monitor<[InterimResponse]>
        private let begunAt = SystemClock.monotonicNanoseconds()

        /// The interim responses so far.
        var interimResponses: [InterimResponse] { interim.withLock { $0 } }

        fileprivate init(_ service: TransferService, _ request: RequestContext, _ interim: Monitor<[InterimResponse]>) {
            self.request = request
            self.interim = interim
            request.responseFields = service.responseFields(for: request.fields, isSecure: request.isSecure)
            let target: RequestTarget
            switch request.received.evaluation {
            case .accepted(let framing, let accepted): (request.framing, target) = (framing, accepted)
            case .refused(let refusal):
                response = HTTPSemantics.Response(ProblemDetails(refusal))
                return
            }
            request.origin = service.origin(of: request.fields, peer: "127.0.0.1")
            request.interim = InterimChannel(
                send: { bytes, _, _ in
                    guard let head = try? ParsedHead(bytes[...]) else { return .broken }
                    let now = SystemClock.monotonicNanoseconds()
                    interim.withLock {
                        $0.append(InterimResponse(status: head.status, fields: head.fields, arrivedAt: now))
                    }
                    return .sent
                }, base: request.origin.base)
            let step = service.begin(request, for: target)
            if case .receive(let exchange) = step { self.exchange = exchange } else { advance(step) }
        }

        private func advance(_ step: RequestStep?) {
            guard let step else { return }
            response = request.response(of: step)
            isDropped = response == nil
        }

        func receive(_ bytes: [UInt8]) {
            guard let exchange, response == nil, !isDropped, !bytes.isEmpty else { return }
            bytes.withUnsafeBytes { advance(exchange.receive($0)) }
        }

        /// Ends the content.
        /// - Returns: the final response; `nil` if the service sends none.
        func finish() throws -> ConformanceKit.Response? {
            if let exchange, response == nil, !isDropped { advance(exchange.finish()) }
            exchange?.end(response == nil ? .interrupted : .answered)
            guard let response else { return nil }
            var completed = request.complete(response)
            if !completed.status.isContentForbidden, let length = completed.content.length {
                completed.fields.set("Content-Length", "\(length)")
            }
            let hasContent = request.method != .head && !completed.status.isContentForbidden
            let content = hasContent ? try completed.loaded(limit: 100_000_000).content.bytes ?? [] : []
            return ConformanceKit.Response(
                status: Int(completed.status.rawValue), fields: completed.fields, content: content,
                contentSize: Int64(content.count), interim: interimResponses, isConnectionEnded: false,
                requestedAt: begunAt, arrivedAt: SystemClock.monotonicNanoseconds())
        }

        /// Reports that the client has disconnected.
        func interrupt() { exchange?.end(.interrupted) }
    }

    /// Begins a request with this head.
    func begin(_ request: Request) -> Running {
        var fields = Fields()
        for (name, value) in request.fields { fields.append(name, value) }
        if request.hasHost, !fields.contains("Host") { fields.append("Host", authority) }
        switch request.content {
        case .none: break
        case .bytes(let bytes): fields.append("Content-Length", "\(bytes.count)")
        case .declared(let count): fields.append("Content-Length", "\(count)")
        case .chunks, .openChunks: fields.append("Transfer-Encoding", "chunked")
        }
        let head = RequestHead(
            method: HTTPSemantics.Method(rawValue: request.method), target: request.target, fields: fields)
        // The connection has no descriptor, so ending it only records the end.
        let entry = ConnectionEntry(
            output: SocketOutput(descriptor: -1), peer: "127.0.0.1", client: service.client(ofPeer: "127.0.0.1"),
            credentials: nil, now: SystemClock.monotonicNanoseconds())
        return Running(service, RequestContext(TransferServer.ReceivedRequest(head), on: entry), Monitor([]))
    }

    func exchange(_ request: Request, within limit: Duration) throws -> ConformanceKit.Response {
        let running = begin(request)
        switch request.content {
        case .bytes(let bytes): running.receive(bytes)
        case .chunks(let chunks): for chunk in chunks { running.receive(chunk) }
        case .none, .declared, .openChunks: break
        }
        guard let response = try running.finish() else { throw TestFailure("there is no response") }
        return response
    }
}

/// A server with its own port.
final class SocketService: TestedService {
    private let parts: ServiceStore
    private let server: Server
    private let port: UInt16
    /// The connection of the last exchange, if it is open.
    private var idle: RawConnection?
    private let lines = Monitor<[String]>([])

    var directory: TemporaryDirectory { parts.directory }
    var authority: String { "127.0.0.1:\(port)" }

    init(_ settings: ServiceSettings = ServiceSettings()) throws {
        parts = try ServiceStore(settings)
        var configuration = settings.server
        configuration.logSink = .lines { [lines] line in
            lines.withLock { $0.append(line) }
            lines.notifyAll()
        }
        server = Server(configuration: configuration, store: parts.store, handlers: parts.handlers)
        try server.startBlocking()
        guard case .tcp(_, let port)? = server.addresses.first else { throw TestFailure("no address") }
        self.port = port
    }

    deinit {
        server.stopBlocking()
        parts.store.close()
    }

    func connect(receiveBuffer: Int32? = nil) throws -> RawConnection {
        try RawConnection(port: port, receiveBuffer: receiveBuffer)
    }

    /// Sends a request on the connection of the previous exchange, so it also shows where the previous response ended.
    func exchange(_ request: Request, within limit: Duration) throws -> ConformanceKit.Response {
        let connection = try idle ?? connect()
        idle = nil
        let response = try connection.exchange(request, within: limit)
        let isKept = request.version == "HTTP/1.1" && !response.list("Connection").contains("close")
        if isKept, !response.isConnectionEnded { idle = connection }
        return response
    }

    /// Waits until the log has a line for which the function returns true.
    func awaitLog(_ isFound: (String) -> Bool) -> Bool {
        lines.wait(until: Deadline(in: .seconds(60)).nanoseconds) { $0.contains(where: isFound) ? () : nil } != nil
    }

    /// Waits until the log reports an interrupted request with this method: by then the server has stored the received
    /// bytes.
    func awaitInterruption(_ method: String) throws {
        guard awaitLog({ $0.contains(" \(method) ") && $0.hasSuffix(" interrupted") }) else {
            throw TestFailure("no request was interrupted")
        }
    }
}

extension Fields {
    static func + (left: Fields, right: Fields) -> Fields {
        right.reduce(into: left) { $0.append($1.name, $1.value) }
    }
}
