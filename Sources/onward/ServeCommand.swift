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
            let environment = Environment.variables
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
        let server = server(settings, files, store)
        observation.onNote { server.note($0.isProblem ? .error : .info, $0.text) }
        let delivery = files.events.map { events in
            EventDelivery(events, from: store) { level, text in server.note(level, text) }
        }
        // Events are delivered until the server has stopped. The delivery is closed before the store, which it reads.
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
        reportProblems(of: store, to: server)
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
        stop(server)
        return .done
    }

    /// The server that is about to be started.
    private static func server(_ settings: ServeSettings, _ files: CredentialFiles, _ store: UploadStore) -> Server {
        var configuration = files.applied(to: settings.server)
        configuration.version = Onward.version
        let server = Server(
            configuration: configuration, store: store,
            handlers: [(settings.server.ownPrefix + "/files", settings.filesHandler(of: store))]
                + settings.routes.map { ($0.prefix, GatewayHandler($0)) })
        logDamage(of: store, to: server, settings.storage)
        return server
    }

    /// Logs what the store has found when it was opened.
    private static func reportProblems(of store: UploadStore, to server: Server) {
        if let shortage = store.spaceShortage { server.note(.warning, "not ready, new uploads get 507: \(shortage)") }
        if let downtime = store.doubtfulDowntime {
            server.note(
                .warning,
                "according to the wall clock the server was down for \(downtime) s, longer than --max-age; the clock may be"
                    + " wrong, so no upload expires within the first hour")
        }
    }

    /// Stops the server. A second signal stops it without waiting for responses in progress.
    private static func stop(_ server: Server) {
        do throws(Errno) {
            _ = try WorkerThread(name: "second-signal") {
                _ = ProcessControl.awaitSignal(of: ProcessControl.endSignals)
                server.stopNow()
            }
        } catch {
            server.note(.warning, "a second signal will have no effect, because no thread can wait for it: \(error)")
        }
        server.stopBlocking()
    }

    /// - Parameter observation: records errors of a shared storage.
    private static func open(
        _ settings: ServeSettings, _ observation: ClusterObservation
    ) throws(StoreError) -> UploadStore {
        let configuration = storeConfiguration(settings)
        if let cluster = settings.storage.cluster {
            return try UploadStore.open(
                cluster, credentials: ObjectCredentials(environment: Environment.variables),
                configuration: configuration,
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
        configuration.shouldRecordEvents = settings.events != nil
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
            : "See docs/scale.md, \"Backup\""
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
}
