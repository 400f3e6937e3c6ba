import CommandLineInterface

/// What a service manager says to a process that it starts, in variables of the environment (sd_listen_fds(3),
/// sd_notify(3), sd_watchdog_enabled(3)).
struct ServiceEnvironment: Equatable {
    /// Sockets that were handed over: descriptors from 3 on, each with the name that it was given, or "".
    var socketNames: [String] = []
    /// Where to tell how the service is.
    var notificationAddress: String?
    /// Within how many microseconds each sign of life has to follow the one before.
    var watchdogInterval: Int64?

    /// All of them, for those who start other processes.
    static let variables = [
        "LISTEN_PID", "LISTEN_PIDFDID", "LISTEN_FDS", "LISTEN_FDNAMES", "NOTIFY_SOCKET", "WATCHDOG_PID",
        "WATCHDOG_USEC",
    ]

    /// The first descriptor that is handed over (`SD_LISTEN_FDS_START`).
    static let firstDescriptor: Int32 = 3

    init() {}

    /// - Parameter process: the number of this process: what was meant for another one, and is still in the environment, is
    ///   not heard.
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
