import CommandLineInterface
import SystemCalls

/// The service manager that started this process and waits to hear how it is, where there is one: systemd, or whoever else
/// speaks its protocols. Without one nothing is told to anybody.
final class ServiceManager: Sendable {
    private let environment: ServiceEnvironment
    private let notifications: NotificationSocket?
    /// Why it cannot be told anything, though it wants to be.
    let warning: String?
    private let status = Monitor("")

    /// Reads what it says, and takes that out of the environment. To be called before any other thread is started.
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

    /// The sockets that it has bound and hands over.
    func sockets() throws(OptionError) -> [ListeningSocket] {
        var sockets: [ListeningSocket] = []
        for (index, name) in environment.socketNames.enumerated() {
            let descriptor = ServiceEnvironment.firstDescriptor + Int32(index)
            do throws(Errno) { sockets.append(try ListeningSocket(inherited: descriptor)) } catch {
                throw OptionError(
                    "descriptor \(descriptor)\(name.isEmpty ? "" : " (\(name))") was handed over and cannot be served:"
                        + " \(error). It has to be a listening stream socket (ListenStream=, Accept=no)")
            }
        }
        return sockets
    }

    /// Nanoseconds within which ``isAlive()`` has to follow the one before; nil: nobody watches.
    var watchdogInterval: Int64? { notifications == nil ? nil : environment.watchdogInterval.map { $0 * 1000 } }

    /// Whether somebody waits to be told.
    var isPresent: Bool { notifications != nil }

    // MARK: - What it is told

    /// The store is being opened. Recovery takes what it takes: a start that is cut short would only begin again. So the
    /// time for it is extended until what this returns is released.
    func isOpening(_ root: String, sign interval: Int64 = 10_000_000_000) throws(Errno) -> OpeningSign? {
        guard let notifications else { return nil }
        send("STATUS=Opening \(Self.line(root))")
        return try OpeningSign(every: interval) {
            try? notifications.send("EXTEND_TIMEOUT_USEC=\(6 * interval / 1000)")
        }
    }

    /// Requests are answered, at these addresses.
    func isReady(_ addresses: [SocketAddress]) {
        let text = "Serving " + addresses.map { Self.line("\($0)") }.joined(separator: ", ")
        status.withLock { $0 = text }
        send("READY=1\nSTATUS=\(text)")
    }

    func isReloading() {
        let now = SystemClock.monotonicNanoseconds() / 1000
        send("RELOADING=1\nMONOTONIC_USEC=\(now)\nSTATUS=Reading its files again")
    }

    /// It ends, within so many seconds.
    func isStopping(within seconds: Int) {
        let limit = Int64(seconds) * 1_000_000
        send("STOPPING=1\nSTATUS=Ending answers under way\nEXTEND_TIMEOUT_USEC=\(limit)")
    }

    /// It is at work. - Parameter troubles: why nothing can be stored; none: it can.
    func isAlive(_ troubles: [String]) {
        let text = status.withLock { $0 }
        let trouble = troubles.isEmpty ? "" : "; nothing can be stored: " + troubles.joined(separator: ", ")
        send("WATCHDOG=1\nSTATUS=\(text)\(Self.line(trouble))")
    }

    private func send(_ message: String) {
        // A manager that is gone has no use for it.
        try? notifications?.send(message)
    }

    /// Text that stays one line of a message.
    private static func line(_ text: String) -> String {
        String(text.unicodeScalars.map { $0.value < 0x20 ? " " : Character($0) })
    }
}

/// Repeats a message until it is released.
final class OpeningSign: Sendable {
    private let isOver = Monitor(false)

    fileprivate init(every nanoseconds: Int64, _ send: @escaping @Sendable () -> Void) throws(Errno) {
        _ = try WorkerThread(name: "opening-sign") { [isOver] in
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
