import HTTPSemantics
import ResumableUpload
import SystemCalls
import TLS
import UploadStorage

/// A server for resumable uploads and Range downloads.
///
/// It serves its handlers below their prefixes, upload resources below `/uploads/`, resources for browsers below
/// `/onward/`, and `/healthz`, `/readyz` and `/metrics`. From its start on the process ignores SIGPIPE. Only
/// ``run(stoppingOn:)`` handles other signals. The server never ends the process.
public final class Server: Sendable {
    /// The reason why a server could not start.
    public enum StartError: Error, Sendable, CustomStringConvertible {
        /// The server cannot listen on an address; the second value is the system error.
        case cannotListen(SocketAddress, Errno)
        /// Anonymous access is not allowed, and other machines can connect to this address.
        case anonymousBeyondLoopback(SocketAddress)
        /// The system cannot create a thread for this part of the server. The server does not listen.
        case cannotStartThread(String, Errno)
        case alreadyStarted
        /// libmicrohttpd does not receive through this library, so its input would not be verified. The text describes
        /// the failed test. See ``explanation``.
        case receiveFilterIneffective(String)

        /// The same as ``explanation``.
        public var description: String { explanation }

        /// The error and its remedy in a sentence for operators.
        public var explanation: String {
            switch self {
            case .cannotListen(let address, let reason): "cannot listen on \(address): \(reason)"
            case .anonymousBeyondLoopback(let address):
                """
                \(address) can be reached from other machines, but without credentials only requests from this machine \
                are allowed: set authorizer or isAnonymousAllowed in the configuration, or listen on 127.0.0.1
                """
            case .cannotStartThread(let part, let reason): "cannot start a thread for \(part): \(reason)"
            case .alreadyStarted: "the server can be started only once"
            case .receiveFilterIneffective(let reason):
                """
                libmicrohttpd does not receive through the server's filter, which verifies all requests: \(reason).
                The functions poll, recv and gnutls_record_recv of the module CReceiveFilter have to come before those of \
                the system in the order of dynamic linking: link the server into the program itself, do not load it with \
                dlopen, do not hide its symbols, and preload no library that defines them.
                """
            }
        }
    }

    private struct Running {
        var daemons: [MicroHTTPDaemon] = []
        var addresses: [SocketAddress] = []
        var threads: [WorkerThread] = []
        var isStarted = false
    }

    private let configuration: ServerConfiguration
    private let store: UploadStore
    private let service: TransferService
    private let registry: ConnectionRegistry
    private let log: ServerLog
    private let credentials: CurrentCredentials?
    private let running = Monitor(Running())

    /// - Parameters:
    ///   - configuration: the addresses, limits and timeouts.
    ///   - store: the storage of uploads and files. The server observes it, and does not close it.
    ///   - handlers: target resources by the first segments of their URLs, such as `("files", FilesHandler(store:))`.
    public init(
        configuration: ServerConfiguration, store: UploadStore,
        handlers: [(prefix: String, handler: any TargetHandler)]
    ) {
        self.configuration = configuration
        self.store = store
        log = ServerLog(format: configuration.logFormat, level: configuration.logLevel, sink: configuration.logSink)
        credentials = configuration.credentials.map { CurrentCredentials($0) }
        registry = ConnectionRegistry(
            timeouts: ConnectionTimeouts(
                header: configuration.headerTimeout.nanoseconds,
                idle: configuration.idleTimeout.nanoseconds,
                minRate: configuration.minRate),
            capacity: configuration.maxConnections)
        service = TransferService(
            configuration: configuration, store: store, routes: Routes(handlers, ownPrefix: configuration.ownPrefix),
            log: log, connections: registry)
        store.observe(by: service.metrics)
    }

    /// The addresses on which the server listens, with the ports that the system chose. Empty before `start()`.
    public var addresses: [SocketAddress] { running.withLock { $0.addresses } }

    /// Verifies the receive filter, starts all threads and listens on all addresses. After an error nothing is running.
    /// See also ``run(stoppingOn:)``.
    /// - Throws: `StartError`.
    public func start() async throws(StartError) {
        let result: Result<Void, StartError>
        do throws(Errno) {
            result = try await WorkerThread.run(name: "server-start") { [self] in
                do throws(StartError) { return .success(try startBlocking()) } catch { return .failure(error) }
            }
        } catch {
            throw .cannotStartThread("the start of the server", error)
        }
        try result.get()
    }

    /// Starts the server as `start()` does, but blocks the calling thread until the server has started.
    /// - Parameter inherited: sockets to serve in addition to the addresses of the configuration. The server then owns
    ///   these sockets.
    package func startBlocking(on inherited: [ListeningSocket] = []) throws(StartError) {
        ProcessControl.ignoreBrokenPipes()
        try running.withLock { state throws(StartError) in
            guard !state.isStarted else { throw .alreadyStarted }
            do throws(StartError) {
                try startThreads(&state)
                try listen(inherited, &state)
                state.isStarted = true
            } catch {
                registry.stop()
                for thread in state.threads { thread.join() }
                state.threads = []
                log.stop(within: Self.logTimeout)
                throw error
            }
        }
        for address in addresses { log.info("listening on \(address)") }
    }

    private func listen(_ inherited: [ListeningSocket], _ state: inout Running) throws(StartError) {
        var sockets = inherited
        for address in configuration.listeners {
            do throws(Errno) { sockets.append(try ListeningSocket(address)) } catch {
                throw .cannotListen(address, error)
            }
        }
        for socket in sockets {
            guard socket.isLocal || configuration.isAnonymousAllowed || configuration.authorizer != nil else {
                throw .anonymousBeyondLoopback(socket.address)
            }
        }
        let reason: String?
        do throws(Errno) { reason = try ReceiveFilterCheck.failure(credentials: credentials) } catch {
            throw .cannotStartThread("the check of the receive filter", error)
        }
        if let reason { throw .receiveFilterIneffective(reason) }
        for socket in sockets {
            let isUnix = if case .unix = socket.address { true } else { false }
            let daemon = MicroHTTPDaemon(
                service: service, registry: registry, credentials: isUnix ? nil : credentials)
            var options = MicroHTTPDaemon.Options(maxConnections: configuration.maxConnections)
            if service.shouldCreateAllHeads { options.connectionMemory = MicroHTTPDaemon.Options.memoryForOwnHeads }
            do throws(Errno) { try daemon.start(on: socket, options: options) } catch {
                for daemon in state.daemons { daemon.stop() }
                state.daemons = []
                state.addresses = []
                // The socket listens already, so the error means that a thread or memory is not available.
                if error == .wouldBlock || error == .outOfMemory {
                    throw .cannotStartThread("connections at \(socket.address)", error)
                }
                throw .cannotListen(socket.address, error)
            }
            state.daemons.append(daemon)
            state.addresses.append(socket.address)
        }
    }

    /// Stops the server. It accepts no new connections, makes received content of unfinished uploads durable, closes
    /// their connections, and waits for responses in progress up to ``ServerConfiguration/drainTimeout``. After this
    /// time, handlers that still run are canceled, and must return within ``StoreConfiguration/processingWait``.
    /// Returns when all connections are closed. A canceled task waits, too.
    public func stop() async {
        do throws(Errno) {
            try await WorkerThread.run(name: "server-stop") { [self] in stopBlocking() }
        } catch {
            // The system cannot create a thread. A blocked thread is better than a server that cannot be stopped.
            stopBlocking()
        }
    }

    /// Stops the server as `stop()` does, but blocks the calling thread until the server has stopped.
    package func stopBlocking() {
        let daemons = running.withLock { state in
            defer { state.daemons = [] }
            return state.daemons
        }
        service.beginDraining()
        for daemon in daemons { daemon.stopListening() }
        log.info(
            "stopping: \(registry.count) connections are open, responses in progress are closed after"
                + " \(configuration.drainTimeout.wholeSeconds) s")
        registry.drain(until: SystemClock.deadline(in: configuration.drainTimeout))
        for daemon in daemons { daemon.stop() }
        registry.stop()
        log.info("stopped")
        log.stop(within: Self.logTimeout)
    }

    /// The time in nanoseconds for writing the last lines of the log when the server stops.
    private static let logTimeout: Int64 = 1_000_000_000

    /// Replaces the certificate for new connections; open connections keep their certificate. This method has no effect
    /// on a server without TLS.
    public func replaceCredentials(with credentials: ServerCredentials) {
        self.credentials?.replace(with: credentials)
    }

    /// Writes a line of the embedding program to the log of the server. After the server has stopped, nothing is
    /// written.
    public func note(_ level: LogLevel, _ message: String) {
        switch level {
        case .error: log.error(message)
        case .warning: log.warning(message)
        case .info, .debug: log.info(message)
        }
    }

    /// Makes ``stop()`` close all connections now, without waiting for responses.
    public func stopNow() { registry.drainNow() }

    private func startThreads(_ state: inout Running) throws(StartError) {
        registry.prepareStart()
        do throws(Errno) { try log.start() } catch { throw .cannotStartThread("the log", error) }
        do throws(Errno) {
            state.threads.append(try WorkerThread(name: "reaper") { [registry] in registry.reap() })
        } catch {
            throw .cannotStartThread("timeouts", error)
        }
        do throws(Errno) {
            state.threads.append(try WorkerThread(name: "sweeper") { [self] in sweep() })
        } catch {
            throw .cannotStartThread("expiry", error)
        }
    }

    /// Removes expired uploads and checks a part of the store, once a second while the server runs.
    private func sweep() {
        var seconds = 0
        var reported: [String: Int] = [:]
        while registry.waitUnlessStopped(nanoseconds: 1_000_000_000) {
            seconds += 1
            let report = store.sweepPart()
            service.metrics.count(expired: report.unfinished)
            if let jump = report.clockJump {
                log.warning(
                    "the wall clock jumped \(jump < 0 ? "back" : "forward") by \(jump.magnitude) s; lifetimes of uploads are"
                        + " not affected")
            }
            // A failure that persists is logged once in 15 minutes.
            for failure in Set(report.failures.map { "\($0)" }).sorted() where reported[failure, default: 0] <= seconds
            {
                log.warning("maintenance of the store failed: \(failure)")
                reported[failure] = seconds + 900
            }
            if reported.count > 100 { reported = [:] }
            if report.expired + report.orphans > 0 {
                log.info(
                    "removed \(report.expired) expired uploads and \(report.orphans) content files without an upload")
            }
        }
    }
}

extension Server {
    /// A signal that stops ``Server/run(stoppingOn:)``.
    public struct Signal: RawRepresentable, Sendable, Hashable {
        /// The number of the signal.
        public let rawValue: Int32

        /// Creates a signal from its number, such as `SIGUSR1`.
        public init(rawValue: Int32) { self.rawValue = rawValue }

        /// The signal with which a service manager requests the end of the process.
        public static let sigterm = Signal(rawValue: 15)
        /// The signal that Ctrl-C in a terminal sends.
        public static let sigint = Signal(rawValue: 2)
        /// The signal that is sent when the terminal is closed.
        public static let sighup = Signal(rawValue: 1)
    }

    /// Starts the server, and stops it when one of `signals` arrives or the task is canceled. Returns when all
    /// connections are closed.
    ///
    /// While the server runs, the signals do not end the process. A second signal closes all connections without
    /// waiting for responses in progress. Signals that the process has ignored since its start have no effect: nohup(1)
    /// ignores SIGHUP, and a shell script ignores SIGINT for a command that ends with `&`.
    /// - Parameter signals: the signals that stop the server; empty: only a cancellation stops it.
    /// - Throws: `StartError` if the server could not start.
    public func run(stoppingOn signals: [Signal] = [.sigterm, .sigint]) async throws(StartError) {
        ProcessControl.ignoreBrokenPipes()
        let (requests, continuation) = AsyncStream.makeStream(of: Void.self)
        let isRequested = Monitor(false)
        let isFirstRequest: @Sendable () -> Bool = {
            continuation.finish()
            return isRequested.withLock { isRequested in
                defer { isRequested = true }
                return !isRequested
            }
        }
        let subscription: SignalSubscription
        do throws(Errno) {
            subscription = try SignalSubscription(signals.map(\.rawValue)) { [self] _ in
                if !isFirstRequest() { stopNow() }
            }
        } catch {
            throw .cannotStartThread("signals", error)
        }
        defer { subscription.cancel() }
        try await start()
        // The loop also ends if the task is canceled.
        for await _ in requests {}
        _ = isFirstRequest()
        await stop()
    }
}
