import CommandLineInterface
import Glibc
import HTTPSemantics
import SystemCalls
import TransferServer
import UploadStorage

/// `onward serve`: runs the server until it is asked to end.
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
                Console.Bounded.error("onward serve: warning: \(name) in the environment is not the name of any option")
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
        // Sockets that were handed over take the place of the default.
        if !settings.listeners.isEmpty || !sockets.isEmpty { settings.server.listeners = settings.listeners }
        return serve(settings, on: sockets, for: manager)
    }

    private static func serve(
        _ settings: ServeSettings, on sockets: [ListeningSocket], for manager: ServiceManager
    ) -> ExitStatus {
        ProcessControl.raiseDescriptorLimit()
        let reloadSignals = ProcessControl.hold([ProcessControl.reloadSignal])
        let files: CredentialFiles
        do { files = try CredentialFiles(settings) } catch {
            Console.Bounded.error("onward serve: \(error.message)")
            return .usage
        }
        var configuration = settings.store
        configuration.interruptedResponse = .init(
            ProblemDetails(
                status: 500, detail: "The server ended while the target worked on the upload.",
                code: "target-interrupted"))
        configuration.validated = FilesHandler.validated
        // Without an end of unfinished uploads, answers are the only thing that expires.
        configuration.lifetime = settings.server.limits.maxAge ?? configuration.keepCompleted
        let opening: OpeningSign?
        do throws(Errno) { opening = try manager.isOpening(settings.root) } catch {
            return report(.cannotStartThread("the service manager", error))
        }
        defer { opening?.end() }
        let store: UploadStore
        do {
            store = try UploadStore.open(root: settings.root, configuration: configuration)
        } catch {
            return report(error, root: settings.root)
        }
        defer { store.close() }
        var serverConfiguration = files.applied(to: settings.server)
        serverConfiguration.version = Onward.version
        let server = Server(
            configuration: serverConfiguration, store: store,
            handlers: [("files", settings.filesHandler(of: store))])
        store.onLoss { upload in
            server.note(
                .error,
                "\(upload) lost bytes that had been acknowledged: something else wrote to \(settings.root)/uploads, or the disk"
                    + " failed; 'onward check' looks at the rest")
        }
        store.onDamage { error in
            server.note(
                .error,
                "the catalog is damaged (\(error)), and the server is not ready: uploads are refused, files are still served."
                    + " Stop it and bring back a copy of \(settings.root)/onward.sqlite; 'onward check' looks at the rest"
            )
        }
        do { try server.start(on: sockets) } catch { return report(error) }
        opening?.end()
        manager.isReady(server.addresses)
        if !manager.isPresent { print(explanation(of: server, settings)) }
        files.logState(to: server)
        if let shortage = store.spaceShortage { server.note(.warning, "not ready, new uploads get 507: \(shortage)") }
        if let downtime = store.doubtfulDowntime {
            server.note(
                .warning,
                "by the wall clock the server was down for \(downtime) s, longer than uploads live (--max-age): nothing expires"
                    + " within the first hour")
        }
        if let warning = manager.warning { server.note(.warning, warning) }
        let watchdog: Watchdog?
        do throws(Errno) { watchdog = try Self.watchdog(of: server, store, for: manager) } catch {
            server.stop()
            return report(.cannotStartThread("the watchdog", error))
        }
        while reloadSignals.contains(ProcessControl.awaitSignal(of: ProcessControl.endSignals + reloadSignals)) {
            manager.isReloading()
            files.reload(server)
            manager.isReady(server.addresses)
        }
        watchdog?.stop()
        manager.isStopping(within: settings.server.drainTimeout + 30)
        // Whoever asks twice does not want to wait for answers under way.
        do throws(Errno) {
            _ = try WorkerThread(name: "second-signal") {
                _ = ProcessControl.awaitSignal(of: ProcessControl.endSignals)
                server.stopNow()
            }
        } catch {
            server.note(.warning, "a second signal will have no effect: no thread to wait for it: \(error)")
        }
        server.stop()
        return .done
    }

    /// Tells the manager that the server lives for as long as it does, if the manager wants to know.
    private static func watchdog(
        of server: Server, _ store: UploadStore, for manager: ServiceManager
    ) throws(Errno) -> Watchdog? {
        guard let interval = manager.watchdogInterval else { return nil }
        let check = LivenessCheck(
            addresses: server.addresses, store: store,
            until: SystemClock.monotonicNanoseconds() + min(interval / 2, 5_000_000_000))
        for address in check.unreachable {
            server.note(.info, "the watchdog cannot see whether clients get in at \(address), and looks at the rest")
        }
        return try Watchdog(
            interval: interval, look: { check.health(until: $0) }, sign: { manager.isAlive($0.reasons) },
            alarm: {
                server.note(.error, "the server is stuck; the watchdog gets no sign of life")
            })
    }

    /// Writes to standard output without waiting: it may be a pipe that nothing reads.
    private static func print(_ text: String) {
        do throws(Errno) { _ = try WorkerThread(name: "notes") { Console.Bounded.output(text) } } catch {
            Console.Bounded.output(text)
        }
    }

    /// The lines to try, for the person at the terminal.
    private static func explanation(of server: Server, _ settings: ServeSettings) -> String {
        let token = settings.tokenFile != nil ? " -H 'Authorization: Bearer TOKEN'" : ""
        let scheme = settings.certificateFiles != nil ? "https" : "http"
        var text = "onward serves \(settings.root)"
        for case .tcp(let host, let port) in server.addresses.prefix(1) {
            let name = ["0.0.0.0", "::"].contains(host) ? "localhost" : host.contains(":") ? "[\(host)]" : host
            let base = settings.server.publicBase?.description ?? "\(scheme)://\(name):\(port)"
            let url = base + "/files/big.bin"
            text += """
                 at \(base)/

                Upload a file, resumable:
                  curl -v\(token) -T big.bin -H 'Upload-Complete: ?1' -H 'Upload-Draft-Interop-Version: 8' \(url)
                The first response, 104, names the upload's own URL. After a cut ask it for the offset:
                  curl -I\(token) \(base)/uploads/…
                and send the rest from there:
                  tail -c +$((OFFSET + 1)) big.bin | curl\(token) -X PATCH -T - -H 'Upload-Offset: OFFSET' \\
                    -H 'Upload-Complete: ?1' -H 'Content-Type: application/partial-upload' \(base)/uploads/…
                Download it, and go on after a cut:
                  curl\(token) -C - -O \(url)
                """
        }
        return text
    }

    private static func report(_ error: StoreError, root: String) -> ExitStatus {
        switch error {
        case .inUse:
            Console.Bounded.error("onward serve: another server uses \(root). Stop it, or choose another --root.")
            return .tryAgain
        case .cannotStartThread(let reason):
            return reportNoThread(for: "the store", reason)
        case .unusableRoot(let reason), .foreignData(let reason):
            Console.Bounded.error("onward serve: \(root) cannot be used: \(reason)")
        case .damaged(let reason):
            Console.Bounded.error(
                """
                onward serve: \(root) cannot be used: \(reason).
                Bring back a copy of onward.sqlite, or move it and uploads/ away to begin without unfinished uploads. The
                files in files/ are not concerned.
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
                onward serve: \(address) can be reached from other machines, and anybody could read and write there.
                Listen on 127.0.0.1, ask for tokens with --token-file, or allow that with --allow-anonymous.
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
            onward serve: the system has no thread for \(part): \(reason).
            Raise the limit of processes ('ulimit -u', TasksMax= of systemd, pids.max of the container) or of memory.
            """)
        return .systemRefusal
    }

    private static func explanation(of reason: Errno, _ address: SocketAddress) -> String {
        switch (reason, address) {
        case (.addressInUse, .tcp): "\(reason). Choose another address with --listen HOST:PORT or ONWARD_LISTEN."
        case (.addressInUse, .unix): "something else has this name, or a server listens there already"
        case (.invalidArgument, .tcp(let host, _)): "there is no host \(host)"
        default: "\(reason)"
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
