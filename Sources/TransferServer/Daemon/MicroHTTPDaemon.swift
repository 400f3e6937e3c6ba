import CMicroHTTPD
import CReceiveFilter
import Glibc
import HTTPSemantics
import SystemCalls
import TLS

/// One listening socket served by libmicrohttpd, with a thread for each connection.
///
/// Only this file has callbacks of libmicrohttpd. They run on the thread of the connection, except `admit` and
/// `notifyConnection`, which run on the listening thread.
final class MicroHTTPDaemon: @unchecked Sendable {
    // `start` sets `handle` once, before any callback can run, and `stop` clears it. One owner calls both functions,
    // one after the other. All other properties are constant.
    private var handle: OpaquePointer?
    let service: any RequestService
    let registry: ConnectionRegistry
    /// The certificate for new connections; `nil` without TLS.
    private let credentials: CurrentCredentials?

    struct Options: Sendable {
        var maxConnections: Int
        /// The size in bytes of libmicrohttpd's buffer for one connection. libmicrohttpd clears the buffer twice for each
        /// request, so that a larger one costs time, and is resident once a connection is reused. It must have room for
        /// the head of a response.
        var connectionMemory = memoryForAnyHead
        /// An application can send a head of 32 KiB. This server writes half as many more bytes if the head has short lines
        /// without CR and space.
        static let memoryForAnyHead = 52 << 10
        /// The longest heads that this server creates itself redirect the client. For the content of a file `Location` has
        /// at most `FileResponses.maxRedirection` bytes. For a directory it has a path of up to 12 KiB in percent-encoding
        /// and a query of up to `FilesHandler.maxRedirectedQuery` bytes.
        static let memoryForOwnHeads = 32 << 10
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

    // MARK: - Connections

    fileprivate func opened(_ connection: OpaquePointer) -> AcceptedConnection? {
        guard let descriptor = AcceptedConnection.descriptor(of: connection) else { return nil }
        let credentials = credentials?.value
        let output = SocketOutput(descriptor: descriptor)
        let peer = output.peerAddress
        let entry = ConnectionEntry(
            output: output, peer: peer, client: service.client(ofPeer: peer), credentials: credentials,
            now: SystemClock.monotonicNanoseconds())
        if let credentials, let session = AcceptedConnection.session(of: connection) {
            // If this fails, the connection uses the certificate with which the daemon was started.
            try? credentials.use(for: session)
        }
        let accepted = AcceptedConnection(entry, handle: connection, descriptor: descriptor)
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
        guard case .limited(let closed, let isRejected, let largest) = admission else { return true }
        service.reachedConnectionLimit(closed: closed, isRejected: isRejected, largest: largest)
        return !isRejected
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
        guard let connection = handle.flatMap(AcceptedConnection.object(of:)), let received = connection.nextRequest()
        else { return nil }
        return Unmanaged.passRetained(RequestContext(received, on: connection.entry)).toOpaque()
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
            let connection = AcceptedConnection.object(of: handle)
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
        guard let connection = AcceptedConnection.object(of: handle) else { return }
        let isComplete = code.rawValue == MHD_RequestTerminationCode.REQUEST_TERMINATED_COMPLETED_OK.rawValue
        daemon.complete(request, on: connection, isComplete: isComplete)
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

/// The certificate that a server uses for new connections.
final class CurrentCredentials: Sendable {
    private let current: Monitor<ServerCredentials>

    init(_ credentials: ServerCredentials) { current = Monitor(credentials) }

    var value: ServerCredentials { current.withLock { $0 } }

    func replace(with credentials: ServerCredentials) { current.withLock { $0 = credentials } }
}

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
    func begin(_ request: RequestContext, for target: RequestTarget) -> RequestStep
    /// Records a request that has ended.
    func record(_ summary: RequestSummary)
    /// Reports that content of a response could not be read or produced.
    func contentFailed(_ error: any Error, request: RequestID)
    /// Reports that a new connection exceeded the limit: open connections were closed for it, or it was rejected.
    /// - Parameter largest: the client with the most connections, and how many it had.
    func reachedConnectionLimit(closed: Int, isRejected: Bool, largest: (client: ConnectionClient, count: Int)?)
}
