import Glibc
import TestSupport

/// strace(1), attached to a running server until ``end()``.
final class Tracer {
    private let process: ChildProcess
    private let log: String

    init(_ options: [String], of server: ServerProcess) throws {
        log = server.directory.path + "/trace-" + String(UInt32.random(in: 0 ... .max))
        process = try ChildProcess(
            "/usr/bin/strace", ["-f", "-p", String(server.process.identifier)] + options + ["-o", log])
        try process.awaitErrorOutput(containing: " attached")
    }

    /// Delays system calls.
    /// - Parameter calls: names of system calls, separated by commas.
    convenience init(delaying calls: String, of server: ServerProcess, microseconds: Int) throws {
        try self.init(["-e", "trace=" + calls, "-e", "inject=\(calls):delay_enter=\(microseconds)"], of: server)
    }

    /// Makes system calls fail.
    /// - Parameters:
    ///   - calls: names of system calls, separated by commas.
    ///   - path: the file or directory; only calls that concern it fail.
    ///   - error: the error of these calls, such as "EIO".
    ///   - occasions: the calls that fail, in strace's notation: "1" for the first one, "1+" for all.
    convenience init(
        failing calls: String, of server: ServerProcess, on path: String?, error: String, occasions: String = "1+"
    ) throws {
        let filter = path.map { ["-P", $0] } ?? []
        try self.init(
            filter + ["-e", "trace=" + calls, "-e", "inject=\(calls):error=\(error):when=\(occasions)"], of: server)
    }

    /// Counts all system calls.
    convenience init(counting server: ServerProcess) throws {
        try self.init(["-c", "-U", "calls,name"], of: server)
    }

    /// Detaches from the server, which continues.
    /// - Parameter limit: the time after which strace is killed.
    /// - Returns: what strace has written.
    @discardableResult
    func end(within limit: Duration = .seconds(60)) throws -> String {
        process.kill(SIGTERM)
        // If strace ends while it delays a call, the system completes the call.
        do { _ = try process.awaitEnding(within: limit) } catch {
            process.kill(SIGKILL)
            _ = try process.awaitEnding()
        }
        return textOfFile(log)
    }

    /// Detaches from the server, and returns the number of calls that failed.
    func endFailures() throws -> Int { try end().split(separator: "\n").count { $0.contains("(INJECTED)") } }

    /// Detaches from the server, and returns the number of each call that was made.
    func endCounting() throws -> [String: Int] {
        // When strace attaches, it interrupts the calls in which threads wait, and the system restarts them.
        let ignored: Set<Substring> = ["total", "restart_syscall"]
        var counts: [String: Int] = [:]
        for line in try end().split(separator: "\n") {
            let words = line.split(separator: " ")
            guard words.count == 2, let count = Int(words[0]), !ignored.contains(words[1]) else { continue }
            counts[String(words[1])] = count
        }
        return counts
    }
}
