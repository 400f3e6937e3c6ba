import CommandLineInterface

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
