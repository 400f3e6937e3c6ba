import CommandLineInterface
import SystemCalls

/// The service manager that started this process: systemd, or another one with the same protocols. Without a service
/// manager nothing is sent.
final class ServiceManager: Sendable {
    private let environment: ServiceEnvironment
    private let notifications: NotificationSocket?
    /// The reason why the notification socket cannot be used; `nil` if the socket can be used or does not exist.
    let warning: String?
    private let status = Monitor("")

    /// Reads the environment variables of the manager and removes them. Call it before any other thread is started.
    init(_ variables: [String: String]) throws(OptionError) {
        ProcessControl.removeVariables(ServiceEnvironment.variables)
        environment = try ServiceEnvironment(variables, process: ProcessControl.identifier)
        do throws(Errno) {
            notifications = try environment.notificationAddress.map { (address) throws(Errno) in
                try NotificationSocket(address: address)
            }
            warning = nil
        } catch {
            notifications = nil
            warning = "NOTIFY_SOCKET in the environment cannot be used: \(error)"
        }
    }

    /// The sockets that the manager has bound and passes to this process.
    func sockets() throws(OptionError) -> [ListeningSocket] {
        var sockets: [ListeningSocket] = []
        for (index, name) in environment.socketNames.enumerated() {
            let descriptor = ServiceEnvironment.firstDescriptor + Int32(index)
            do throws(Errno) { sockets.append(try ListeningSocket(inherited: descriptor)) } catch {
                throw OptionError(
                    "the service manager passed descriptor \(descriptor)\(name.isEmpty ? "" : " (\(name))"), which"
                        + " cannot be used: \(error). It must be a listening stream socket (ListenStream=, Accept=no)")
            }
        }
        return sockets
    }

    /// The maximum time in nanoseconds between two calls of ``notifyAlive(_:)``; `nil` without a watchdog.
    var watchdogInterval: Int64? { notifications == nil ? nil : environment.watchdogInterval.map { $0 * 1000 } }

    /// Whether the manager receives notifications.
    var isPresent: Bool { notifications != nil }

    // MARK: - Notifications

    /// Reports that the store is being opened. Recovery can take long. After a start timeout the manager would restart
    /// the server, and the recovery would begin again. So the start timeout is extended until the returned object is
    /// released.
    func notifyOpening(_ root: String, every interval: Int64 = 10_000_000_000) throws(Errno) -> OpeningNotifier? {
        guard let notifications else { return nil }
        send("STATUS=Opening \(Self.line(root))")
        return try OpeningNotifier(every: interval) {
            try? notifications.send("EXTEND_TIMEOUT_USEC=\(6 * interval / 1000)")
        }
    }

    /// Reports that the server serves requests at these addresses.
    func notifyReady(_ addresses: [SocketAddress]) {
        let text = "Serving " + addresses.map { Self.line("\($0)") }.joined(separator: ", ")
        status.withLock { $0 = text }
        send("READY=1\nSTATUS=\(text)")
    }

    func notifyReloading() {
        let now = SystemClock.monotonicNanoseconds() / 1000
        send("RELOADING=1\nMONOTONIC_USEC=\(now)\nSTATUS=Reading certificates, tokens and secrets again")
    }

    /// Reports that the server stops within `limit`.
    func notifyStopping(within limit: Duration) {
        send("STOPPING=1\nSTATUS=Finishing responses in progress\nEXTEND_TIMEOUT_USEC=\(limit.nanoseconds / 1000)")
    }

    /// Reports that the server works. `troubles` lists why nothing can be stored; empty if the store works.
    func notifyAlive(_ troubles: [String]) {
        let text = status.withLock { $0 }
        let trouble = troubles.isEmpty ? "" : "; nothing can be stored: " + troubles.joined(separator: ", ")
        send("WATCHDOG=1\nSTATUS=\(text)\(Self.line(trouble))")
    }

    private func send(_ message: String) {
        // An error is ignored, because it means that the manager has ended.
        try? notifications?.send(message)
    }

    /// Replaces line feeds, so that the text is one line of a message.
    private static func line(_ text: String) -> String {
        String(text.unicodeScalars.map { $0.value < 0x20 ? " " : Character($0) })
    }
}

/// Repeats a message until this object is released.
final class OpeningNotifier: Sendable {
    private let isOver = Monitor(false)

    fileprivate init(every nanoseconds: Int64, _ send: @escaping @Sendable () -> Void) throws(Errno) {
        _ = try WorkerThread(name: "opening-notice") { [isOver] in
            repeat {
                send()
            } while isOver.wait(
                until: SystemClock.monotonicNanoseconds() + nanoseconds, { $0 ? true : nil }) == nil
        }
    }

    func end() {
        isOver.withLock { $0 = true }
        isOver.notifyAll()
    }

    deinit { end() }
}

/// The environment variables of a service manager for a process that it starts (sd_listen_fds(3), sd_notify(3),
/// sd_watchdog_enabled(3)).
struct ServiceEnvironment: Equatable {
    /// The names of the inherited sockets, which are the descriptors from 3 on; "" for one without a name.
    var socketNames: [String] = []
    /// The address of the notification socket.
    var notificationAddress: String?
    /// The watchdog timeout in microseconds.
    var watchdogInterval: Int64?

    /// The names of all these variables, which must not be passed to child processes.
    static let variables = [
        "LISTEN_PID", "LISTEN_PIDFDID", "LISTEN_FDS", "LISTEN_FDNAMES", "NOTIFY_SOCKET", "WATCHDOG_PID",
        "WATCHDOG_USEC",
    ]

    /// The first inherited descriptor (`SD_LISTEN_FDS_START`).
    static let firstDescriptor: Int32 = 3

    init() {}

    /// - Parameter process: the ID of this process. Variables for another process are ignored.
    init(_ variables: [String: String], process: Int32) throws(OptionError) {
        notificationAddress = variables["NOTIFY_SOCKET"].flatMap { $0.isEmpty ? nil : $0 }
        if let text = variables["WATCHDOG_USEC"], (variables["WATCHDOG_PID"] ?? "\(process)") == "\(process)" {
            guard let interval = Int64(text), interval > 0, interval < Int64.max / 1000 else {
                throw OptionError("WATCHDOG_USEC in the environment is '\(text)', not a number of microseconds")
            }
            watchdogInterval = interval
        }
        if let text = variables["LISTEN_FDS"], variables["LISTEN_PID"] == "\(process)" {
            guard let count = Int(text), (1...65_536).contains(count) else {
                throw OptionError("LISTEN_FDS in the environment is '\(text)', not a number of sockets")
            }
            let names = (variables["LISTEN_FDNAMES"] ?? "").split(separator: ":", omittingEmptySubsequences: false)
            socketNames = (0..<count).map { $0 < names.count ? String(names[$0]) : "" }
        }
    }
}
