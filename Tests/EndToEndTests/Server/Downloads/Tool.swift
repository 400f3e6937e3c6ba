import Glibc
import TestSupport

/// A common program for downloads and uploads.
enum Tool: String, Sendable {
    case curl, aria2c, wget, rclone, lftp, sqlite3

    /// The path of the program; `nil` if it is not installed.
    var path: String? {
        ["/usr/bin/", "/usr/local/bin/", "/bin/"].map { $0 + rawValue }.first { access($0, X_OK) == 0 }
    }

    var isInstalled: Bool { path != nil }

    /// Starts the program, without the user's configuration and without a proxy.
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

    /// Runs the program to its end. If `output` is given, the program gets the option `-o` with this path.
    @discardableResult
    func run(_ arguments: [String], output: String? = nil) throws -> ChildProcess.Ending {
        try start(arguments + (output.map { ["-o", $0] } ?? [])).awaitEnding(within: .seconds(45))
    }
}
