import ClusterStorage
import CommandLineInterface
import Gateway
import Glibc
import HTTPSemantics
import ObjectStorage
import SystemCalls
import TransferServer
import UploadStorage

/// `onward serve`: runs the server until a signal stops it.
enum ServeCommand {
    static func run(_ arguments: [CommandArgument]) -> ExitStatus {
        let parser = OptionParser(options: ServeSettings.options)
        if arguments.contains("--help") || arguments.contains("-h") {
            Console.output(HelpText(page, of: "onward").text)
            return .done
        }
        var settings = ServeSettings()
        let manager: ServiceManager
        do {
            let environment = environment()
            manager = try ServiceManager(environment)
            try parser.parse(arguments, environment: environment, into: &settings)
            try settings.check()
            for name in parser.unknownVariables(of: environment) {
                Console.Bounded.error("onward serve: warning: there is no option for the environment variable \(name)")
            }
        } catch {
            Console.Bounded.error("onward serve: \(error.message)\nSee 'onward serve --help'.")
            return .usage
        }
        let sockets: [ListeningSocket]
        do { sockets = try manager.sockets() } catch {
            Console.Bounded.error("onward serve: \(error.message)")
            return .unavailable
        }
        // Inherited sockets replace the default address.
        if !settings.listeners.isEmpty || !sockets.isEmpty { settings.server.listeners = settings.listeners }
        return serve(settings, on: sockets, for: manager)
    }

    private static func serve(
        _ settings: ServeSettings, on sockets: [ListeningSocket], for manager: ServiceManager
    ) -> ExitStatus {
        let descriptors = ProcessControl.raiseDescriptorLimit()
        // nohup(1) makes a program ignore the signal. A revoked token must not remain valid for this reason.
        ProcessControl.blockSignals([ProcessControl.reloadSignal], evenIfIgnored: true)
        let files: CredentialFiles
        do { files = try CredentialFiles(settings) } catch {
            Console.Bounded.error("onward serve: \(error.message)")
            return .usage
        }
        let opening: OpeningNotifier?
        do throws(Errno) { opening = try manager.notifyOpening(settings.storage.description) } catch {
            return report(.cannotStartThread("the service manager", error))
        }
        defer { opening?.end() }
        let store: UploadStore
        let observation = ClusterObservation()
        do {
            store = try open(settings, observation)
        } catch {
            return report(error, settings.storage)
        }
        defer { store.close() }
        var serverConfiguration = files.applied(to: settings.server)
        serverConfiguration.version = Onward.version
        let server = Server(
            configuration: serverConfiguration, store: store,
            handlers: [(settings.server.ownPrefix + "/files", settings.filesHandler(of: store))]
                + settings.routes.map { ($0.prefix, GatewayHandler($0)) })
        logDamage(of: store, to: server, settings.storage)
        observation.onNote { server.note($0.isProblem ? .error : .info, $0.text) }
        let delivery = files.events.map { events in
            EventDelivery(events, from: store) { level, text in server.note(level, text) }
        }
        // The last line of the log is written after the server has stopped, so no delivery runs then.
        defer { delivery?.close() }
        do { try server.startBlocking(on: sockets) } catch { return report(error) }
        do throws(Errno) { try delivery?.startBlocking() } catch {
            server.stopBlocking()
            return report(.cannotStartThread("events", error))
        }
        opening?.end()
        manager.notifyReady(server.addresses)
        if !manager.isPresent { print(explanation(of: server, settings)) }
        files.logState(to: server)
        if let shortage = store.spaceShortage { server.note(.warning, "not ready, new uploads get 507: \(shortage)") }
        if let downtime = store.doubtfulDowntime {
            server.note(
                .warning,
                "according to the wall clock the server was down for \(downtime) s, longer than --max-age; the clock may be"
                    + " wrong, so no upload expires within the first hour")
        }
        if let warning = manager.warning { server.note(.warning, warning) }
        if let descriptors { warn(of: descriptors, settings, server) }
        let watchdog: Watchdog?
        do throws(Errno) { watchdog = try Self.watchdog(of: server, store, for: manager) } catch {
            server.stopBlocking()
            return report(.cannotStartThread("the watchdog", error))
        }
        let signals = ProcessControl.endSignals + [ProcessControl.reloadSignal]
        while ProcessControl.awaitSignal(of: signals) == ProcessControl.reloadSignal {
            manager.notifyReloading()
            files.reload(server, delivery)
            manager.notifyReady(server.addresses)
        }
        watchdog?.stop()
        manager.notifyStopping(within: settings.server.drainTimeout + .seconds(30))
        // A second signal stops the server without waiting for responses in progress.
        do throws(Errno) {
            _ = try WorkerThread(name: "second-signal") {
                _ = ProcessControl.awaitSignal(of: ProcessControl.endSignals)
                server.stopNow()
            }
        } catch {
            server.note(.warning, "a second signal will have no effect, because no thread can wait for it: \(error)")
        }
        server.stopBlocking()
        return .done
    }

    /// - Parameter observation: records errors of a shared storage.
    private static func open(
        _ settings: ServeSettings, _ observation: ClusterObservation
    ) throws(StoreError) -> UploadStore {
        let configuration = storeConfiguration(settings)
        if let cluster = settings.storage.cluster {
            return try UploadStore.open(
                cluster, credentials: ObjectCredentials(environment: environment()), configuration: configuration,
                observation: observation)
        }
        return try UploadStore.open(root: settings.storage.root, configuration: configuration)
    }

    private static func storeConfiguration(_ settings: ServeSettings) -> StoreConfiguration {
        var configuration = settings.store
        configuration.interruptedResponse = .init(
            ProblemDetails(
                status: 500, detail: "The server stopped while it processed the complete upload.",
                code: "target-interrupted"))
        configuration.retainUnknownOutcomes(of: settings.routes, ownPrefix: settings.server.ownPrefix)
        configuration.validated = FilesHandler.validated
        configuration.recordsEvents = settings.events != nil
        // If unfinished uploads do not expire, only stored responses do.
        configuration.lifetime = settings.server.limits.maxAge.map { .seconds($0) } ?? configuration.keepCompleted
        return configuration
    }

    /// Logs lost bytes and a damaged catalog when they are found.
    private static func logDamage(of store: UploadStore, to server: Server, _ storage: StorageSettings) {
        let root = storage.root
        let cause =
            storage.cluster == nil
            ? "another program wrote to \(root)/uploads, or the disk failed; run 'onward check' to verify all uploads and"
                + " files" : "the object storage has lost them, or another program has removed them"
        store.onLoss { upload in server.note(.error, "\(upload) lost acknowledged bytes: \(cause)") }
        let advice =
            storage.cluster == nil
            ? "Stop it and restore \(root)/onward.sqlite from a backup; 'onward check' verifies everything else"
            : "If another database uses the bucket with the same prefix, choose another prefix. Otherwise restore the database"
                + " and the objects from a backup"
        store.onDamage { error in
            server.note(
                .error,
                "\(error). The server is not ready: it rejects uploads and still serves files."
                    + " \(advice)"
            )
        }
    }

    /// Warns if the connections can need more open files than the process may have.
    private static func warn(of descriptors: UInt64, _ settings: ServeSettings, _ server: Server) {
        let needed = settings.maxOpenFiles
        guard descriptors < needed else { return }
        server.note(
            .warning,
            "the system allows \(descriptors) open files, but --max-connections \(settings.server.maxConnections) can"
                + " need \(needed). When all are in use, new connections get no response. Raise the limit ('ulimit -n', or"
                + " LimitNOFILE= of the service), or lower --max-connections")
    }

    /// Starts the watchdog if the service manager requests it.
    private static func watchdog(
        of server: Server, _ store: UploadStore, for manager: ServiceManager
    ) throws(Errno) -> Watchdog? {
        guard let interval = manager.watchdogInterval else { return nil }
        let check = LivenessCheck(
            addresses: server.addresses, store: store,
            until: SystemClock.monotonicNanoseconds() + min(interval / 2, 5_000_000_000))
        for address in check.unreachable {
            server.note(.info, "the watchdog cannot connect to \(address) and does not check this address")
        }
        return try Watchdog(
            interval: interval, check: { check.health(until: $0) }, send: { manager.notifyAlive($0.reasons) },
            alarm: {
                server.note(.error, "the server is stuck; no keep-alive message is sent to the service manager")
            })
    }

    /// Writes to standard output without waiting, because it can be a pipe without a reader.
    private static func print(_ text: String) {
        do throws(Errno) { _ = try WorkerThread(name: "notes") { Console.Bounded.output(text) } } catch {
            Console.Bounded.output(text)
        }
    }

    /// The commands to try, shown at the start.
    private static func explanation(of server: Server, _ settings: ServeSettings) -> String {
        let token = settings.tokenFile != nil ? " -H 'Authorization: Bearer TOKEN'" : ""
        let scheme = settings.certificateFiles != nil ? "https" : "http"
        var text = "onward serves \(settings.storage.description)"
        for case .tcp(let host, let port) in server.addresses.prefix(1) {
            let name = ["0.0.0.0", "::"].contains(host) ? "localhost" : host.contains(":") ? "[\(host)]" : host
            let base = settings.server.publicBase?.description ?? "\(scheme)://\(name):\(port)"
            if let route = settings.routes.first {
                let forwarded = settings.routes.map { "  \($0.path) to \($0.origin)" }.joined(separator: "\n")
                return text + """
                     at \(base)/ and forwards requests below these paths:
                    \(forwarded)

                    Upload a file for an application, resumable:
                      curl -v\(token) -T big.bin -X POST -H 'Upload-Complete: ?1' -H 'Upload-Draft-Interop-Version: 8' \(base)\(route.path)
                    """
            }
            let url = base + settings.server.ownPrefix + "/files/big.bin"
            text += """
                 at \(base)/

                Upload a file, resumable:
                  curl -v\(token) -T big.bin -H 'Upload-Complete: ?1' -H 'Upload-Draft-Interop-Version: 8' \(url)
                The first response, 104, has the URL of the upload. After an interruption, request the offset:
                  curl -I\(token) \(base)\(settings.server.ownPrefix)/uploads/…
                and send the remaining bytes from there:
                  tail -c +$((OFFSET + 1)) big.bin | curl\(token) -X PATCH -T - -H "Upload-Offset: $OFFSET" \\
                    -H 'Upload-Complete: ?1' -H 'Content-Type: application/partial-upload' \(base)\(settings.server.ownPrefix)/uploads/…
                Download it; the same command resumes after an interruption:
                  curl\(token) -C - -O \(url)
                """
        }
        return text
    }

    private static func report(_ error: StoreError, _ storage: StorageSettings) -> ExitStatus {
        let root = storage.description
        switch error {
        case .inUse:
            Console.Bounded.error("onward serve: another server uses \(root). Stop it, or choose another --root.")
            return .tryAgain
        case .cannotStartThread(let reason):
            return reportNoThread(for: "the store", reason)
        case .unusableRoot(let reason):
            Console.Bounded.error("onward serve: \(root) cannot be used: \(reason)")
        case .unusableHandover(let reasons):
            Console.Bounded.error("onward serve: \(reasons)")
        case .damaged(let reason) where storage.cluster != nil, .foreignData(let reason) where storage.cluster != nil:
            Console.Bounded.error("onward serve: \(root) cannot be used: \(reason). See docs/scale.md, \"Backup\".")
        case .damaged(let reason), .foreignData(let reason):
            Console.Bounded.error(
                """
                onward serve: \(root) cannot be used: \(reason).
                Restore onward.sqlite from a backup, or move it and uploads/ away to start without unfinished uploads. The
                files in files/ are not affected.
                """)
        case .newerSchema(let version):
            Console.Bounded.error(
                "onward serve: \(root) was written by a newer version of onward (schema \(version)). Nothing was changed."
            )
        default:
            Console.Bounded.error("onward serve: \(root) cannot be used: \(error)")
        }
        return .inputOutput
    }

    private static func report(_ error: Server.StartError) -> ExitStatus {
        switch error {
        case .cannotListen(let address, let reason):
            Console.Bounded.error("onward serve: cannot listen on \(address): \(explanation(of: reason, address))")
            return .unavailable
        case .anonymousBeyondLoopback(let address):
            Console.Bounded.error(
                """
                onward serve: \(address) can be reached from other machines, and all clients could read and write there.
                Listen on 127.0.0.1, require tokens with --token-file, or allow anonymous access with --allow-anonymous.
                """)
            return .usage
        case .cannotStartThread(let part, let reason):
            return reportNoThread(for: part, reason)
        case .alreadyStarted:
            return .usage
        case .receiveFilterIneffective:
            Console.Bounded.error("onward serve: \(error.explanation)")
            return .systemRefusal
        }
    }

    private static func reportNoThread(for part: String, _ reason: Errno) -> ExitStatus {
        Console.Bounded.error(
            """
            onward serve: the system cannot start a thread for \(part): \(reason).
            Raise the limit of processes ('ulimit -u', TasksMax= of systemd, pids.max of the container) or of memory.
            """)
        return .systemRefusal
    }

    private static func explanation(of reason: Errno, _ address: SocketAddress) -> String {
        switch (reason, address) {
        case (.addressInUse, .tcp): "\(reason). Choose another address with --listen HOST:PORT or ONWARD_LISTEN."
        case (.addressInUse, .unix): "a file of this name exists, or a server listens there already"
        default: address.explanation(of: reason)
        }
    }

    static func environment() -> [String: String] {
        var variables: [String: String] = [:]
        var entry = environ
        while let text = entry.pointee {
            let parts = String(cString: text).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            if parts.count == 2 { variables[String(parts[0])] = String(parts[1]) }
            entry = entry.advanced(by: 1)
        }
        return variables
    }
}

extension ServeCommand {
    static let page = ManualPage(
        "serve", "serve resumable uploads, and downloads with ranges", usage: ["serve [OPTIONS]"],
        """
        Serves resumable uploads, and downloads with ranges. Every option has an
        environment variable, for example ONWARD_MAX_SIZE for --max-size. Sizes have units
        K M G T (powers of 1000) and KiB MiB GiB TiB (of 1024), durations s m h d.
        """,
        options: ServeSettings.options.map(\.manual),
        sections: [
            ManualSection(
                "Data directory",
                [
                    .terms([
                        ("files/", "published files under their own names"),
                        ("uploads/", "the bytes of unfinished uploads"),
                        ("onward.sqlite", "the catalog: the state of uploads and files"),
                        ("retained/", "requests to applications whose outcome is unknown"),
                    ])
                ]),
            ManualSection(
                "Routes",
                [
                    .paragraph(
                        """
                        --route PATH=ORIGIN,SETTING,... forwards all requests to PATH and below to an application. Resumable
                        uploads are forwarded when they are complete, as one ordinary request. ORIGIN is http://HOST:PORT,
                        https://HOST:PORT or unix:/PATH. In the file of --routes-file each line is a route, spaces may replace
                        the commas, and # begins a comment. The settings are:
                        """),
                    .terms([
                        (
                            "access=open",
                            "all clients may use the route; without it, --token-file or --auth-url authorizes them"
                        ),
                        (
                            "repeat=safe",
                            """
                            a complete upload may be sent more than once, with the same Idempotency-Key; without this setting
                            it is sent again only after a response with 503
                            """
                        ),
                        (
                            "handover=DIR",
                            """
                            the application gets the path of a complete upload in Onward-Path instead of its content, and can
                            move the file to another place before it responds. DIR is an absolute path in the mount of the data directory;
                            it belongs to the user of the server and to a group of the application, with mode 2710
                            """
                        ),
                        (
                            "timeout=DURATION",
                            "maximum time in which the application sends and receives nothing [default: 60s]"
                        ),
                        (
                            "retry=DURATION",
                            """
                            maximum time for which a request waits if the application cannot be reached or responds with 503
                            [default: 10s]
                            """
                        ),
                    ]),
                ]),
            ManualSection(
                "Checks before publication",
                [
                    .paragraph(
                        """
                        --check DESTINATION,SETTING,... passes each complete file of /files/ to a program or a URL before the
                        file appears. DESTINATION is the absolute path of a program, which gets the file on standard input
                        and its description in variables ONWARD_CHECK_..., or a URL (http, https, or unix:/SOCKET:/PATH),
                        which gets the file with POST. Exit status 0 or a status of 2xx accepts the file. Exit status 1 with a
                        reason on standard output, a status of 422, or a problem document with another 4xx (except 401, 407, 408,
                        425 and 429) refuses the file, which is removed. In all other cases the check has failed: the file
                        of a resumable upload is kept, and is checked again when the client repeats its request. The settings
                        are:
                        """),
                    .terms([
                        (
                            "timeout=DURATION",
                            "maximum time of a check, and of the wait for other checks [default: 60s]"
                        ),
                        ("max=N", "maximum number of checks at the same time [default: 8]"),
                    ]),
                ]),
            ManualSection(
                "Events",
                [
                    .paragraph(
                        """
                        --events DESTINATION,SETTING,... reports changes of uploads. DESTINATION is a URL (http, https, or
                        unix:/SOCKET:/PATH), which gets a CloudEvent with the headers of Standard Webhooks, or the absolute
                        path of a program, which gets the CloudEvent on standard input and ends with status 0 if it has
                        received the event. An event can be delivered more than once. The settings are:
                        """),
                    .terms([
                        ("timeout=DURATION", "maximum time of one attempt [default: 30s]"),
                        (
                            "retry=DURATION",
                            "time after which an event that cannot be delivered is set aside [default: 24h]"
                        ),
                        ("keep=DURATION", "time after which an event is dropped [default: 7d]"),
                        ("max=N", "maximum number of events; the oldest are dropped [default: 1000000]"),
                        ("source=URI", "attribute source of the CloudEvents [default: onward]"),
                    ]),
                    .paragraph("'onward events' lists, retries and drops events that could not be delivered."),
                ]),
            ManualSection(
                "Signals",
                [
                    .terms([
                        (
                            "SIGTERM, SIGINT",
                            """
                            make received content of unfinished uploads durable, close their connections, wait for responses in
                            progress up to --drain-timeout, and exit; a second signal exits at once. Clients resume after
                            the restart.
                            """
                        ),
                        ("SIGHUP", "read the certificate, the key, the token file and the secrets of events again"),
                    ])
                ]),
            ManualSection(
                "Exit status",
                [
                    .terms([
                        ("0", "stopped as requested"),
                        (
                            "64",
                            """
                            wrong usage, an unusable token file, or an address that other machines can reach without any
                            of --token-file, --auth-url, --route, --routes-file and --allow-anonymous
                            """
                        ),
                        ("69", "cannot listen on an address"),
                        ("71", "the system cannot provide something that the server needs, such as a thread"),
                        ("74", "unusable data directory, or unusable directory of handover="),
                        ("75", "another server uses the data directory"),
                    ])
                ]),
            ManualSection(
                "Examples",
                [
                    .paragraph("Behind a proxy with TLS, for clients with a token:"),
                    .example(
                        """
                        onward serve --root /srv/onward --token-file /etc/onward/tokens --max-size 100G --quota 1T
                        """),
                ]),
        ])
}
