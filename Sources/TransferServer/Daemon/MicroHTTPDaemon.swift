import CMicroHTTPD
import CReceiveFilter
import Glibc
import HTTPSemantics
import SystemCalls
import TLS

/// The functions of the server that the daemon calls.
protocol RequestService: Sendable {
    /// The origin of a request on a connection from `peer` (`nil`: a Unix socket).
    func origin(of fields: Fields, peer: String?) -> RequestOrigin
    /// The client for which a connection from `peer` (`nil`: a Unix socket) is counted while it serves no forwarded
    /// request.
    func client(ofPeer peer: String?) -> ConnectionClient
    /// The client for which a connection from a trusted peer is counted while it serves this request; `nil`: the peer.
    func client(of fields: Fields, origin: RequestOrigin) -> ConnectionClient?
    /// The fields of every response to a request with `fields`, which can be incomplete.
    func responseFields(for fields: Fields, isSecure: Bool) -> Fields
    /// Starts to serve a request whose head is complete, and sets its principal.
    func begin(_ request: RequestContext, for target: RequestTarget) -> FirstStep
    /// Records a request that has ended.
    func record(_ summary: RequestSummary)
    /// Reports that content of a response could not be read or produced.
    func contentFailed(_ error: any Error, request: RequestID)
    /// Reports that a new connection exceeded the limit: open connections were closed for it, or it was rejected.
    /// - Parameter largest: the client with the most connections, and how many it had.
    func reachedConnectionLimit(closed: Int, isRefused: Bool, largest: (client: ConnectionClient, count: Int)?)
}

/// One listening socket served by libmicrohttpd, with a thread for each connection.
///
/// Only this file has callbacks of libmicrohttpd. They run on the thread of the connection, except `admit` and
/// `notifyConnection`, which run on the listening thread.
final class MicroHTTPDaemon: @unchecked Sendable {
    // `start` sets `handle` once, before any callback can run, and `stop` clears it. One owner calls both functions,
    // one after the other. All other properties are constant.
    private var handle: OpaquePointer?
    private let service: any RequestService
    private let registry: ConnectionRegistry
    /// The certificate for new connections; `nil` without TLS.
    private let credentials: CurrentCredentials?

    struct Options: Sendable {
        var maxConnections: Int
        /// The size in bytes of libmicrohttpd's buffer for one connection, which becomes resident once a connection is
        /// reused. It must have room for the head of a response.
        var connectionMemory = 64 << 10
        var threadStack = 512 << 10
    }

    init(service: any RequestService, registry: ConnectionRegistry, credentials: CurrentCredentials?) {
        self.service = service
        self.registry = registry
        self.credentials = credentials
    }

    /// Serves `socket`, which the daemon then owns; `nil`: only connections that ``add(_:)`` adds are served.
    /// - Throws: `Errno` when the daemon cannot start.
    func start(on socket: ListeningSocket?, options: Options) throws(Errno) {
        var flags =
            MHD_USE_THREAD_PER_CONNECTION.rawValue | MHD_USE_POLL_INTERNAL_THREAD.rawValue | MHD_USE_ITC.rawValue
        if socket == nil { flags |= MHD_USE_NO_LISTEN_SOCKET.rawValue }
        let context = Unmanaged.passUnretained(self).toOpaque()
        func option(_ option: MHD_OPTION, _ value: Int, _ pointer: UnsafeMutableRawPointer? = nil) -> MHD_OptionItem {
            MHD_OptionItem(option: option, value: value, ptr_value: pointer)
        }
        var items = [
            option(.CONNECTION_MEMORY_LIMIT, options.connectionMemory),
            // At its own limit libmicrohttpd closes every new connection, regardless of the client. So its limit is
            // larger: it includes open connections, closed connections whose threads have not ended, and threads that
            // libmicrohttpd has not joined yet.
            option(
                .CONNECTION_LIMIT,
                options.maxConnections
                    + ConnectionRegistry.maxClosing(capacity: options.maxConnections) + 64),
            option(.CONNECTION_TIMEOUT, 0),
            option(.THREAD_STACK_SIZE, options.threadStack),
            option(.URI_LOG_CALLBACK, address(of: beginTarget), context),
            option(.NOTIFY_COMPLETED, address(of: notifyCompleted), context),
            option(.NOTIFY_CONNECTION, address(of: notifyConnection), context),
            option(.END, 0),
        ]
        if let socket {
            let descriptor = socket.release()
            _ = onward_filter_add_listener(descriptor)
            items.insert(option(.LISTEN_SOCKET, Int(descriptor)), at: 0)
        }
        errno = 0
        if let initial = credentials?.value {
            flags |= MHD_USE_TLS.rawValue
            // libmicrohttpd requires a certificate at its start; a connection gets the current certificate when it is
            // opened.
            handle = (initial.certificate + [0]).withUnsafeBytes { certificate in
                (initial.key + [0]).withUnsafeBytes { key in
                    ServerCredentials.priorities.withCString { priorities in
                        let secured = [
                            option(.HTTPS_MEM_CERT, 0, UnsafeMutableRawPointer(mutating: certificate.baseAddress)),
                            option(.HTTPS_MEM_KEY, 0, UnsafeMutableRawPointer(mutating: key.baseAddress)),
                            option(.HTTPS_PRIORITIES, 0, UnsafeMutableRawPointer(mutating: priorities)),
                        ]
                        var items = secured + items
                        return onward_mhd_start(flags, admit, answer, context, &items)
                    }
                }
            }
        } else {
            handle = onward_mhd_start(flags, admit, answer, context, &items)
        }
        if handle == nil { throw Errno(rawValue: errno == 0 ? ENOMEM : errno) }
    }

    /// Stops accepting connections; open connections continue.
    func stopListening() {
        guard let handle else { return }
        let descriptor = MHD_quiesce_daemon(handle)
        if descriptor >= 0 {
            onward_filter_remove(descriptor)
            close(descriptor)
        }
    }

    /// Serves a connected Unix socket, which the daemon then owns, even if the call fails.
    func add(_ descriptor: Int32) throws(Errno) {
        var address = sockaddr(sa_family: sa_family_t(AF_UNIX), sa_data: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))
        guard MHD_add_connection(handle, descriptor, &address, socklen_t(MemoryLayout<sa_family_t>.size)) == .YES else {
            throw .current
        }
    }

    /// Closes all connections and waits until their threads have returned.
    func stop() {
        guard let handle else { return }
        MHD_stop_daemon(handle)
        self.handle = nil
    }

    // MARK: - One request

    /// - Parameter hasContent: whether libmicrohttpd has received a signal of ``RequestReader``.
    fileprivate func serve(
        _ request: RequestContext, on connection: RequestConnection, hasContent: Bool
    ) -> MHD_Result {
        let entry = connection.entry
        switch request.stage {
        case .begun:
            entry.enter(.server, at: SystemClock.monotonicNanoseconds())
            return begin(request, on: connection)
        case .receiving:
            guard let exchange = request.exchange else { return .NO }
            guard hasContent else { return finish(request, by: exchange, on: connection) }
            return ContentBuffers.shared.withBuffer { buffer in
                switch connection.readContent(into: buffer) {
                case .bytes(let count):
                    let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<count])
                    return receive(bytes, of: request, by: exchange, on: connection)
                case .none: return check(request, exchange, on: connection)
                case .malformed(let refusal):
                    // The content before the error is kept.
                    connection.accepted.awaiting = nil
                    exchange.end(.interrupted)
                    request.exchange = nil
                    return respondEarly(Response(ProblemDetails(refusal)), to: request, on: connection)
                }
            }
        case .responding(let response):
            return queue(response, to: request, on: connection)
        case .discarding:
            // The response was sent. Content is still read, because the kernel would otherwise reset the connection,
            // and the client could lose the response.
            guard hasContent else { return .NO }
            let content = ContentBuffers.shared.withBuffer { connection.readContent(into: $0) }
            if case .bytes(let count) = content {
                request.contentReceived += Int64(count)
                request.discarded += Int64(count)
            }
            return request.discarded < RequestReader.maxDiscarded ? .YES : .NO
        case .queued:
            return .NO
        }
    }

    private func finish(
        _ request: RequestContext, by exchange: any Exchange, on connection: RequestConnection
    ) -> MHD_Result {
        connection.entry.enter(.server, at: SystemClock.monotonicNanoseconds())
        connection.accepted.awaiting = nil
        switch exchange.finish() {
        case .respond(let response): return queue(response, to: request, on: connection)
        case .proceed, .drop: return .NO
        }
    }

    private func receive(
        _ bytes: UnsafeRawBufferPointer, of request: RequestContext, by exchange: any Exchange,
        on connection: RequestConnection
    ) -> MHD_Result {
        let entry = connection.entry
        request.contentReceived += Int64(bytes.count)
        // While the server stores content, the timeouts for the client do not apply. After the last byte of content
        // they do not apply until the response is sent.
        entry.enter(
            request.isCompletelyReceived ? .server : .storing, received: bytes.count,
            at: SystemClock.monotonicNanoseconds())
        let step = exchange.receive(bytes)
        if !request.isCompletelyReceived { entry.enter(.content, at: SystemClock.monotonicNanoseconds()) }
        return proceed(step, request, on: connection)
    }

    /// Handles a signal of the filter without content: the exchange may have a response for the client.
    private func check(
        _ request: RequestContext, _ exchange: any Exchange, on connection: RequestConnection
    ) -> MHD_Result {
        guard exchange.hasEarlyResponse else { return .YES }
        connection.entry.enter(.storing, at: SystemClock.monotonicNanoseconds())
        let step = exchange.check()
        connection.entry.enter(.content, at: SystemClock.monotonicNanoseconds())
        return proceed(step, request, on: connection)
    }

    private func proceed(
        _ step: NextStep, _ request: RequestContext, on connection: RequestConnection
    ) -> MHD_Result {
        switch step {
        case .proceed: return .YES
        case .respond(let response):
            connection.accepted.awaiting = nil
            return respondEarly(response, to: request, on: connection)
        case .drop: return .NO
        }
    }

    private func begin(_ request: RequestContext, on connection: RequestConnection) -> MHD_Result {
        let head = request.head
        if [.put, .post, .patch].contains(head.method) { request.explanation = UploadExplanation() }
        let target: RequestTarget
        switch request.received.evaluation {
        case .accepted(let framing, let acceptedTarget): (request.framing, target) = (framing, acceptedTarget)
        case .refused(let refusal):
            request.responseFields = service.responseFields(for: head.fields, isSecure: request.isSecure)
            // Nothing after the request on this connection is served.
            return respondEarly(Response(ProblemDetails(refusal)), to: request, on: connection)
        }
        // The origin is evaluated only if the head is valid.
        request.origin = service.origin(of: head.fields, peer: connection.entry.peer)
        request.interim = connection.interimChannel(version: head.version, base: request.origin.base)
        request.responseFields = service.responseFields(for: head.fields, isSecure: request.isSecure)
        if connection.entry.peerClient.isExempt, let client = service.client(of: head.fields, origin: request.origin) {
            registry.count(connection.entry, for: client)
            request.isCountedForClient = true
        }
        let waitsFor100 = Expectation(fields: head.fields, version: head.version) == .continue100
        request.receiveShortContent = { connection.receiveShortContent() }
        defer { request.receiveShortContent = { false } }
        switch service.begin(request, for: target) {
        case .receive(let exchange):
            request.stage = .receiving
            request.exchange = exchange
            if !request.isCompletelyReceived {
                if exchange.checkInterval != nil { connection.accepted.awaiting = exchange }
                connection.entry.enter(.content, at: SystemClock.monotonicNanoseconds())
                // The client may be slow, and the thread has used more of its stack than it needs for content.
                if !connection.accepted.hasInput { ThreadStack.releaseUnused() }
            }
            // libmicrohttpd does not get the Expect field, so the server sends 100 itself.
            if request.expectsContent, waitsFor100 {
                guard connection.output.send(Self.continueHead, timeout: 2000) == .sent else { return .NO }
            }
            return .YES
        case .drop: return .NO
        case .respond(let response):
            guard request.expectsContent else {
                if response.status == .lengthRequired {
                    // Content without a length can follow.
                    request.shouldLinger = true
                    return queue(response, to: request, on: connection)
                }
                // The response is queued at the end of the request, so that the connection stays open.
                request.stage = .responding(response)
                return .YES
            }
            // A client that waits for 100 gets the final status instead.
            if waitsFor100 {
                // The client may have stopped waiting and started to send content. libmicrohttpd would close the
                // connection immediately, so the server keeps it open for a moment.
                request.shouldLinger = true
                return queue(response, to: request, on: connection)
            }
            return respondEarly(response, to: request, on: connection)
        }
    }

    private static let continueHead = Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)

    /// Sends a response before the content has ended, which libmicrohttpd cannot do. The server writes the response
    /// itself, ends its output, and discards input until the client closes the connection or a timeout ends it.
    private func respondEarly(
        _ response: Response, to request: RequestContext, on connection: RequestConnection
    ) -> MHD_Result {
        let response = request.complete(loaded(response, for: request))
        let content = response.content.bytes ?? []
        var fields = response.fields
        if !response.status.forbidsContent { fields.set("Content-Length", "\(content.count)") }
        fields.set("Connection", "close")
        let head = ResponseHead(status: response.status, fields: fields)
        let isHead = request.method == .head
        let outcome = connection.output.send(head.serialized() + (isHead ? [] : content), timeout: 2000)
        guard outcome == .sent else { return .NO }
        request.sent?.isQueued = true
        connection.output.endOutput()
        connection.entry.enter(.discarding, at: SystemClock.monotonicNanoseconds())
        request.stage = .discarding
        return .YES
    }

    /// Reads all content into memory. A response that reports the failure replaces one whose content cannot be read.
    private func loaded(_ response: Response, for request: RequestContext) -> Response {
        do { return try response.loaded() } catch {
            service.contentFailed(error, request: request.id)
            return Response((error as? StoreError).map { ProblemDetails($0) } ?? ProblemDetails.contentFailed)
        }
    }

    /// Up to this number of bytes, content of a file is read into memory: libmicrohttpd sends it together with the head,
    /// which needs fewer system calls than sendfile(2).
    private static let maxCopied: Int64 = 16 << 10

    private func queue(
        _ response: Response, to request: RequestContext, on connection: RequestConnection
    ) -> MHD_Result {
        var response = response
        if case .stream(let stream) = response.content, stream is FileContent, request.method != .head,
            !response.status.forbidsContent, stream.length.map({ $0 <= Self.maxCopied }) ?? false
        {
            response = loaded(response, for: request)
        }
        response = request.complete(response)
        request.stage = .queued
        let entry = connection.entry
        let service = service
        let id = request.id
        let isEndedByClosing = response.content.length == nil && request.head.version == .http10
        let outgoing = OutgoingResponse(
            response, isSecure: entry.credentials != nil, isHead: request.method == .head,
            events: .init(
                streamed: { request.sent?.bytes += Int64($0) },
                failed: { error in
                    service.contentFailed(error, request: id)
                    entry.failContent(resets: isEndedByClosing)
                }))
        guard let outgoing else { return .NO }
        // The kernel gets short content in memory at once, together with the head.
        let isShort = response.content.bytes.map { $0.count <= Self.maxCopied } ?? false
        if !isShort {
            request.sent?.acknowledgedBefore = entry.output.acknowledgedBytes()
        }
        guard connection.queue(outgoing, status: response.status) else { return .NO }
        entry.enter(.response, at: SystemClock.monotonicNanoseconds())
        request.sent?.isQueued = true
        return .YES
    }

    fileprivate func complete(_ request: RequestContext, on connection: RequestConnection, code: UInt32) {
        let isComplete = code == MHD_RequestTerminationCode.REQUEST_TERMINATED_COMPLETED_OK.rawValue
        let end: RequestEnd
        if case .discarding = request.stage { end = .answered } else { end = isComplete ? .answered : .interrupted }
        connection.accepted.awaiting = nil
        request.exchange?.end(end)
        request.exchange = nil
        service.record(request.summary(end))
        if request.isCountedForClient { registry.count(connection.entry, for: connection.entry.peerClient) }
        if request.shouldLinger {
            // Without this the kernel would reset the connection because of unread content, and the client could lose
            // the response.
            connection.output.endOutput()
            connection.entry.enter(.discarding, at: SystemClock.monotonicNanoseconds())
            connection.accepted.stopReading()
            connection.output.discardInput(atMost: RequestReader.maxDiscarded)
        }
        connection.entry.enter(.head(first: false), at: SystemClock.monotonicNanoseconds())
    }

    fileprivate func opened(_ connection: OpaquePointer) -> AcceptedConnection? {
        guard let descriptor = RequestConnection.descriptor(of: connection) else { return nil }
        let credentials = credentials?.value
        let output = SocketOutput(descriptor: descriptor)
        let peer = output.peerAddress
        let entry = ConnectionEntry(
            output: output, peer: peer, client: service.client(ofPeer: peer), credentials: credentials,
            now: SystemClock.monotonicNanoseconds())
        if let credentials, let session = RequestConnection.session(of: connection) {
            // If this fails, the connection uses the certificate with which the daemon was started.
            try? credentials.use(for: session)
        }
        let accepted = AcceptedConnection(entry, descriptor: descriptor)
        registry.add(entry)
        if !accepted.beginFiltering() { entry.close(reason: .tooMany) }
        return accepted
    }

    fileprivate func closed(_ connection: AcceptedConnection) {
        connection.endFiltering()
        registry.remove(connection.entry)
    }

    /// Whether an accepted connection is served. Otherwise libmicrohttpd closes it without starting a thread.
    fileprivate func admits(_ address: UnsafePointer<sockaddr>, length: socklen_t) -> Bool {
        let admission = registry.admit(
            service.client(ofPeer: SocketOutput.numericHost(of: address, length: length)))
        guard case .limited(let closed, let isRefused, let largest) = admission else { return true }
        service.reachedConnectionLimit(closed: closed, isRefused: isRefused, largest: largest)
        return !isRefused
    }
}

// MARK: - Callbacks

private func address<Function>(of function: Function) -> Int {
    Int(bitPattern: unsafeBitCast(function, to: UnsafeRawPointer.self))
}

private func daemon(_ context: UnsafeMutableRawPointer?) -> MicroHTTPDaemon? {
    context.map { Unmanaged<MicroHTTPDaemon>.fromOpaque($0).takeUnretainedValue() }
}

/// Called when the first line of a request has arrived. Returns the context of the request; nil if the request was not
/// received through the filter.
private let beginTarget:
    @convention(c) (UnsafeMutableRawPointer?, UnsafePointer<CChar>?, OpaquePointer?) -> UnsafeMutableRawPointer? = {
        _, _, handle in
        guard let accepted = handle.flatMap({ RequestConnection($0) })?.accepted, let received = accepted.nextRequest()
        else { return nil }
        return Unmanaged.passRetained(RequestContext(received, on: accepted.entry)).toOpaque()
    }

private let admit: @convention(c) (UnsafeMutableRawPointer?, UnsafePointer<sockaddr>?, socklen_t) -> MHD_Result = {
    context, address, length in
    guard let daemon = daemon(context), let address else { return .YES }
    return daemon.admits(address, length: length) ? .YES : .NO
}

private let answer:
    @convention(c) (
        UnsafeMutableRawPointer?, OpaquePointer?, UnsafePointer<CChar>?, UnsafePointer<CChar>?, UnsafePointer<CChar>?,
        UnsafePointer<CChar>?, UnsafeMutablePointer<Int>?, UnsafeMutablePointer<UnsafeMutableRawPointer?>?
    ) -> MHD_Result = { context, handle, _, _, _, _, size, slot in
        guard let daemon = daemon(context), let handle, let size, let raw = slot?.pointee,
            let connection = RequestConnection(handle)
        else { return .NO }
        let request = Unmanaged<RequestContext>.fromOpaque(raw).takeUnretainedValue()
        let hasContent = size.pointee > 0
        size.pointee = 0
        return daemon.serve(request, on: connection, hasContent: hasContent)
    }

private let notifyCompleted:
    @convention(c) (
        UnsafeMutableRawPointer?, OpaquePointer?, UnsafeMutablePointer<UnsafeMutableRawPointer?>?,
        MHD_RequestTerminationCode
    ) -> Void = { context, handle, slot, code in
        guard let daemon = daemon(context), let handle, let raw = slot?.pointee else { return }
        slot?.pointee = nil
        let request = Unmanaged<RequestContext>.fromOpaque(raw).takeRetainedValue()
        guard let connection = RequestConnection(handle) else { return }
        daemon.complete(request, on: connection, code: code.rawValue)
    }

private let notifyConnection:
    @convention(c) (
        UnsafeMutableRawPointer?, OpaquePointer?, UnsafeMutablePointer<UnsafeMutableRawPointer?>?,
        MHD_ConnectionNotificationCode
    ) -> Void = { context, handle, slot, code in
        guard let daemon = daemon(context), let handle, let slot else { return }
        if code.rawValue == MHD_ConnectionNotificationCode.CONNECTION_NOTIFY_STARTED.rawValue {
            slot.pointee = daemon.opened(handle).map { Unmanaged.passRetained($0).toOpaque() }
        } else if let raw = slot.pointee {
            slot.pointee = nil
            daemon.closed(Unmanaged<AcceptedConnection>.fromOpaque(raw).takeRetainedValue())
        }
    }
