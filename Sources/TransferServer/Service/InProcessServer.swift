import HTTPSemantics
import SystemCalls
import UploadStorage

/// Serves requests that the same process makes, without sockets: for tests of handlers.
///
/// Authorization, the upload protocol, files and handlers are those of ``Server``; only the connections are missing.
/// Use this server with a store in memory:
///
/// ```swift
/// let store = try UploadStore.inMemory()
/// defer { store.close() }
/// let server = InProcessServer(store: store, handlers: [("count", Counter())])
/// let response = try await server.send(.post, "/count/x", content: Array("hello".utf8))
/// ```
public final class InProcessServer: Sendable {
    /// The server closed the connection without a response.
    public struct ConnectionClosed: Error, Sendable {}

    private static let maxContent = 1 << 30
    private let service: TransferService

    /// - Parameters:
    ///   - configuration: the limits, the authorizer and ``ServerConfiguration/ownPrefix``. Addresses, timeouts and the
    ///     settings of the log have no effect.
    ///   - store: the storage of uploads and files. The caller closes it.
    ///   - handlers: target resources by the first segments of their URLs, as for ``Server``.
    public init(
        configuration: ServerConfiguration = ServerConfiguration(), store: UploadStore,
        handlers: [(prefix: String, handler: any TargetHandler)]
    ) {
        service = TransferService(
            configuration: configuration, store: store,
            routes: Routes(handlers, ownPrefix: configuration.ownPrefix),
            log: ServerLog(format: configuration.logFormat, level: configuration.logLevel, sink: .none),
            connections: ConnectionRegistry(timeouts: ConnectionTimeouts(header: 0, idle: 0), capacity: 1))
    }

    /// Serves a request as if it came from 127.0.0.1, and returns its final response with all content in memory. The
    /// upload of a complete representation needs one call. For a resumable upload, send the fields of the draft.
    ///
    /// If the task is canceled, the handler is canceled, as when a server stops.
    /// - Parameters:
    ///   - method: the method.
    ///   - target: the path and the query, such as `/count/x?y=z`.
    ///   - fields: the fields of the request. `Host` and `Content-Length` are added.
    ///   - content: the content; `nil` if the request has none.
    /// - Throws: ``ConnectionClosed`` if there is no response; the error of the response's stream.
    public func send(
        _ method: Method, _ target: String, fields: Fields = [:], content: [UInt8]? = nil
    ) async throws -> Response {
        var fields = fields
        if !fields.contains("Host") { fields.append("Host", "localhost") }
        if let content { fields.set("Content-Length", "\(content.count)") }
        let head = RequestHead(method: method, target: target, fields: fields)
        // The connection has no descriptor, so closing it only records the reason.
        let entry = ConnectionEntry(
            output: SocketOutput(descriptor: -1), peer: "127.0.0.1", client: service.client(ofPeer: "127.0.0.1"),
            credentials: nil, now: SystemClock.monotonicNanoseconds())
        return try await withTaskCancellationHandler {
            let result = try await WorkerThread.run(name: "request") { [self] in
                Result { try serve(RequestContext(ReceivedRequest(head), on: entry), content ?? []) }
            }
            return try result.get()
        } onCancel: {
            entry.close(reason: .stopping)
        }
    }

    private func serve(_ request: RequestContext, _ content: [UInt8]) throws -> Response {
        let target: RequestTarget
        switch request.received.evaluation {
        case .accepted(let framing, let accepted): (request.framing, target) = (framing, accepted)
        case .refused(let refusal): return request.complete(Response(ProblemDetails(refusal)))
        }
        request.origin = service.origin(of: request.fields, peer: "127.0.0.1")
        request.interim = InterimChannel(send: { _, _, _ in .sent }, base: request.origin.base)
        request.responseFields = service.responseFields(for: request.fields, isSecure: request.isSecure)
        let step = service.begin(request, for: target)
        guard case .receive(let exchange) = step else {
            guard let response = request.response(of: step) else { throw ConnectionClosed() }
            return try finished(response, to: request)
        }
        let early = content.isEmpty ? nil : content.withUnsafeBytes { exchange.receive($0) }
        guard let response = request.response(of: early ?? exchange.finish()) else {
            exchange.end(.interrupted)
            throw ConnectionClosed()
        }
        exchange.end(.answered)
        return try finished(response, to: request)
    }

    private func finished(_ response: Response, to request: RequestContext) throws -> Response {
        var response = request.complete(response)
        if request.method == .head { response.content = .bytes([]) }
        return try response.loaded(limit: Self.maxContent)
    }
}
