import CMicroHTTPD
import Glibc
import HTTPSemantics
import SystemCalls
import TLS

/// The interface of the daemon to the server.
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
    /// Starts to serve a request whose head is complete.
    func begin(_ request: IncomingRequest) -> DispatchedRequest
    /// Records a request that has ended.
    func record(_ summary: RequestSummary)
    /// Reports that content of a response could not be read or produced.
    func contentFailed(_ error: any Error, request: RequestID)
    /// Reports a new connection at the limit. Open connections were closed for it, or it was rejected.
    /// - Parameter largest: the client with the most connections, and how many it had.
    func reachedConnectionLimit(closed: Int, isRefused: Bool, largest: (client: ConnectionClient, count: Int)?)
}

/// One listening socket served by libmicrohttpd, with a thread for each connection.
///
/// Only this file has callbacks of libmicrohttpd. They run on the thread of the connection, except `admit` and
/// `notifyConnection`, which run on the listening thread.
final class MicroHTTPDaemon: @unchecked Sendable {
    // `handle` is set once by `start`, before any callback can run, and cleared by `stop`; one owner calls both, one
    // after the other. Everything else is constant.
    private var handle: OpaquePointer?
    private let service: any RequestService
    private let registry: ConnectionRegistry
    /// `nil`: without TLS.
    private let credentials: CurrentCredentials?

    struct Options: Sendable {
        var maximumConnections: Int
        /// The size in bytes of libmicrohttpd's buffer for one connection, which becomes resident once a connection is
        /// reused.
        var connectionMemory = 128 << 10
        var threadStack = 512 << 10
    }

    init(service: any RequestService, registry: ConnectionRegistry, credentials: CurrentCredentials?) {
        self.service = service
        self.registry = registry
        self.credentials = credentials
    }

    /// Serves `socket`, which the daemon then owns; `nil`: only connections that are added are served.
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
            // At its own limit libmicrohttpd closes every new connection, regardless of the client. So its limit
            // includes open connections, closed ones whose threads have not ended, and threads that it has not joined
            // yet.
            option(
                .CONNECTION_LIMIT,
                options.maximumConnections
                    + ConnectionRegistry.maximumClosing(capacity: options.maximumConnections) + 64),
            option(.CONNECTION_TIMEOUT, 0),
            option(.THREAD_STACK_SIZE, options.threadStack),
            option(.URI_LOG_CALLBACK, address(of: beginTarget), context),
            option(.NOTIFY_COMPLETED, address(of: notifyCompleted), context),
            option(.NOTIFY_CONNECTION, address(of: notifyConnection), context),
            option(.END, 0),
        ]
        if let socket { items.insert(option(.LISTEN_SOCKET, Int(socket.release())), at: 0) }
        errno = 0
        if let initial = credentials?.value {
            flags |= MHD_USE_TLS.rawValue
            // libmicrohttpd requires a certificate at its start; connections get the current one when they are opened.
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

    /// Stops to accept connections; open ones continue.
    func stopListening() {
        guard let handle else { return }
        let descriptor = MHD_quiesce_daemon(handle)
        if descriptor >= 0 { close(descriptor) }
    }

    /// Serves a connected Unix socket, which the daemon then owns, even if this fails.
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

    fileprivate func serve(
        _ state: RequestState, on connection: RequestConnection, data: UnsafePointer<CChar>?,
        size: UnsafeMutablePointer<Int>
    ) -> MHD_Result {
        let entry = connection.entry
        switch state.stage {
        case .begun:
            entry.enter(.server, at: SystemClock.monotonicNanoseconds())
            return begin(state, on: connection)
        case .receiving(let exchange) where connection.accepted.contentRefusal != nil:
            // The content before this piece is kept; this piece is invalid.
            exchange.end(.interrupted)
            state.exchange = nil
            size.pointee = 0
            guard let refusal = connection.accepted.contentRefusal else { return .NO }
            return refuse(refusal, state, on: connection)
        case .receiving(let exchange) where size.pointee > 0:
            let bytes = UnsafeRawBufferPointer(start: data, count: size.pointee)
            state.contentReceived += Int64(bytes.count)
            size.pointee = 0
            // While the server works, the timeouts for the client do not apply. After the last byte the connection is
            // not closed for a timeout.
            entry.enter(
                state.isCompletelyReceived ? .server : .storing, received: bytes.count,
                at: SystemClock.monotonicNanoseconds())
            let step = exchange.receive(bytes)
            if !state.isCompletelyReceived { entry.enter(.content, at: SystemClock.monotonicNanoseconds()) }
            switch step {
            case .proceed: return .YES
            case .reply(let reply): return replyEarly(reply, state, on: connection)
            case .drop: return .NO
            }
        case .receiving(let exchange):
            entry.enter(.server, at: SystemClock.monotonicNanoseconds())
            switch exchange.finish() {
            case .reply(let reply): return queue(reply, state, on: connection)
            case .proceed, .drop: return .NO
            }
        case .answering(let reply):
            return queue(reply, state, on: connection)
        case .discarding:
            // The response was sent. Reading continues so that the kernel does not destroy it with a reset.
            if size.pointee == 0 { return .NO }
            state.contentReceived += Int64(size.pointee)
            state.discarded += Int64(size.pointee)
            size.pointee = 0
            return state.discarded < RequestReader.maxDiscarded ? .YES : .NO
        case .queued:
            return .NO
        }
    }

    private func begin(_ state: RequestState, on connection: RequestConnection) -> MHD_Result {
        let head = state.head
        state.account.begin(head)
        let framing: MessageFraming
        let target: RequestTarget
        switch state.received.evaluation {
        case .accepted(let receivedFraming, let receivedTarget): (framing, target) = (receivedFraming, receivedTarget)
        case .refused(let refusal):
            state.responseFields = service.responseFields(
                for: head.fields, isSecure: connection.entry.credentials != nil)
            return refuse(refusal, state, on: connection)
        }
        state.framing = framing
        // The origin is evaluated only if the head is valid.
        let origin = service.origin(of: head.fields, peer: connection.entry.peer)
        state.origin = origin
        if connection.entry.peerClient.isExempt, let client = service.client(of: head.fields, origin: origin) {
            registry.count(connection.entry, for: client)
            state.isForwarded = true
        }
        let request = IncomingRequest(
            id: state.id, head: head, framing: framing, target: target, origin: origin, connection: connection.entry,
            interim: connection.interimChannel(version: head.version, base: origin.base), account: state.account)
        let dispatched = service.begin(request)
        let started = dispatched.started
        state.responseFields = dispatched.fields
        state.principal = dispatched.principal
        state.stage = .receiving(started.exchange)
        state.exchange = started.exchange
        switch started.step {
        case .proceed:
            if !state.isCompletelyReceived { connection.entry.enter(.content, at: SystemClock.monotonicNanoseconds()) }
            // libmicrohttpd does not get the Expect field, so the server sends 100 itself.
            if request.expectsContent, Expectation(fields: head.fields, version: head.version) == .continue100 {
                guard connection.output.send(Self.continueHead, timeout: 2000) == .sent else { return .NO }
            }
            return .YES
        case .drop: return .NO
        case .reply(let reply):
            guard request.expectsContent else {
                if reply.status == .lengthRequired {
                    // Content without a length can follow.
                    state.shouldLinger = true
                    return queue(reply, state, on: connection)
                }
                // If the response is queued at the end of the request, the connection stays open.
                state.stage = .answering(reply)
                return .YES
            }
            // A client that waits for 100 gets the final status instead.
            if Expectation(fields: head.fields, version: head.version) == .continue100 {
                // The client may have stopped waiting and be sending content, but libmicrohttpd closes at once, so the
                // connection is kept open for a moment.
                state.shouldLinger = true
                return queue(reply, state, on: connection)
            }
            return replyEarly(reply, state, on: connection)
        }
    }

    private static let continueHead = Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)

    /// Rejects a request with invalid framing. Nothing after it on this connection is served.
    private func refuse(
        _ refusal: FramingRefusal, _ state: RequestState, on connection: RequestConnection
    ) -> MHD_Result {
        replyEarly(Reply(ProblemDetails(refusal)), state, on: connection)
    }

    /// Sends a response before the content has ended, which libmicrohttpd cannot do. The server writes the response
    /// itself, ends its output, and discards input until the client closes or a timeout ends the connection.
    private func replyEarly(_ reply: Reply, _ state: RequestState, on connection: RequestConnection) -> MHD_Result {
        let reply = state.complete(reply)
        guard case .bytes(let content) = reply.content else { return .NO }
        var fields = reply.fields
        if !reply.status.forbidsContent { fields.set("Content-Length", "\(content.count)") }
        fields.set("Connection", "close")
        let head = ResponseHead(status: reply.status, fields: fields)
        let isHead = state.head.method == .head
        let outcome = connection.output.send(head.serialized() + (isHead ? [] : content), timeout: 2000)
        guard outcome == .sent else { return .NO }
        state.isAnswered = true
        connection.output.endOutput()
        connection.entry.enter(.discarding, at: SystemClock.monotonicNanoseconds())
        state.stage = .discarding
        return .YES
    }

    private func queue(_ reply: Reply, _ state: RequestState, on connection: RequestConnection) -> MHD_Result {
        let reply = state.complete(reply)
        state.stage = .queued
        let entry = connection.entry
        let service = service
        let id = state.id
        var isEndedByClosing = false
        if case .stream = reply.content { isEndedByClosing = state.head.version == .http10 }
        let response = OutgoingResponse(
            reply, isSecure: entry.credentials != nil, isHead: state.head.method == .head,
            events: .init(
                streamed: { state.countStreamed($0) },
                failed: { [isEndedByClosing] error in
                    service.contentFailed(error, request: id)
                    entry.failContent(resets: isEndedByClosing)
                }))
        guard let response else { return .NO }
        state.acknowledgedBefore = connection.entry.output.acknowledgedBytes()
        guard connection.queue(response, status: reply.status) else { return .NO }
        connection.entry.enter(.response, at: SystemClock.monotonicNanoseconds())
        state.isAnswered = true
        return .YES
    }

    fileprivate func complete(_ state: RequestState, on connection: RequestConnection, code: UInt32) {
        let isComplete = code == MHD_RequestTerminationCode.REQUEST_TERMINATED_COMPLETED_OK.rawValue
        let end: RequestEnd
        if case .discarding = state.stage { end = .answered } else { end = isComplete ? .answered : .interrupted }
        state.exchange?.end(end)
        state.exchange = nil
        service.record(state.summary(end, of: connection.entry))
        if state.isForwarded { registry.count(connection.entry, for: connection.entry.peerClient) }
        if state.shouldLinger {
            // Without this the kernel would destroy the response with a reset because of unread content.
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
            // If this fails, the connection uses the certificate from the start.
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

/// Called when the first line of a request has arrived. Returns the state of the request; nil if it was not received
/// through the filter.
private let beginTarget:
    @convention(c) (UnsafeMutableRawPointer?, UnsafePointer<CChar>?, OpaquePointer?) -> UnsafeMutableRawPointer? = {
        _, _, handle in
        guard let request = handle.flatMap({ RequestConnection($0) })?.accepted.takeRequest() else { return nil }
        return Unmanaged.passRetained(RequestState(request)).toOpaque()
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
    ) -> MHD_Result = { context, handle, _, _, _, data, size, slot in
        guard let daemon = daemon(context), let handle, let size, let raw = slot?.pointee,
            let connection = RequestConnection(handle)
        else { return .NO }
        let state = Unmanaged<RequestState>.fromOpaque(raw).takeUnretainedValue()
        return daemon.serve(state, on: connection, data: data, size: size)
    }

private let notifyCompleted:
    @convention(c) (
        UnsafeMutableRawPointer?, OpaquePointer?, UnsafeMutablePointer<UnsafeMutableRawPointer?>?,
        MHD_RequestTerminationCode
    ) -> Void = { context, handle, slot, code in
        guard let daemon = daemon(context), let handle, let raw = slot?.pointee else { return }
        slot?.pointee = nil
        let state = Unmanaged<RequestState>.fromOpaque(raw).takeRetainedValue()
        guard let connection = RequestConnection(handle) else { return }
        daemon.complete(state, on: connection, code: code.rawValue)
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
