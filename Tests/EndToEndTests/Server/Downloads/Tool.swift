import Glibc
import TestSupport

/// A program that people download and upload with.
enum Tool: String, Sendable {
    case curl, aria2c, wget, rclone, lftp, sqlite3

    /// Where it is installed; `nil` where it is not.
    var path: String? {
        ["/usr/bin/", "/usr/local/bin/", "/bin/"].map { $0 + rawValue }.first { access($0, X_OK) == 0 }
    }

    var isInstalled: Bool { path != nil }

    /// Starts it. No configuration of the user's counts, and no proxy.
    func start(_ arguments: [String]) throws -> ChildProcess {
        guard let path else { throw TestFailure("\(rawValue) is not installed") }
        let own =
            switch self {
            case .curl: ["-q", "-sS", "--noproxy", "*", "--max-time", "40"]
            case .aria2c: ["--no-conf=true", "--file-allocation=none", "--allow-overwrite=false"]
            case .wget: ["--no-config", "--no-proxy", "-nv", "-T", "20"]
            case .rclone: ["--config", "/dev/null", "--contimeout", "20s"]
            case .lftp: ["--norc"]
            case .sqlite3: ["-batch"]
            }
        return try ChildProcess(path, own + arguments)
    }

    /// Runs it to its end, with its standard output in a file where one is named.
    @discardableResult
    func run(_ arguments: [String], output: String? = nil) throws -> ChildProcess.Ending {
        try start(arguments + (output.map { ["-o", $0] } ?? [])).awaitEnding(within: .seconds(45))
    }
}
