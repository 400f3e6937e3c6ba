import FoundationEssentials
import Glibc
import TestSupport

/// Makes system calls of a running process fail, with strace(1), until ``end()``.
final class FaultInjection {
    private let tracer: ChildProcess
    private let log: String

    /// - Parameters:
    ///   - calls: names of system calls, separated by commas.
    ///   - path: the file or directory; only calls that concern it fail.
    ///   - error: the error of these calls, such as "EIO".
    ///   - occasions: the calls that fail, in strace's notation: "1" for the first one, "1+" for all.
    init(
        _ calls: String, of server: ServerProcess, on path: String?, error: String, occasions: String = "1+"
    ) throws {
        log = server.directory.path + "/faults-" + String(UInt32.random(in: 0 ... .max))
        let filter = path.map { ["-P", $0] } ?? []
        tracer = try ChildProcess(
            "/usr/bin/strace",
            ["-f", "-p", String(server.process.identifier)] + filter + [
                "-e", "trace=" + calls, "-e", "inject=\(calls):error=\(error):when=\(occasions)", "-o", log,
            ])
        _ = try tracer.awaitErrorOutput { $0.contains(" attached") ? true : nil }
    }

    /// Detaches strace from the process; the process continues.
    /// - Returns: The number of calls that failed.
    @discardableResult
    func end() throws -> Int {
        tracer.kill(SIGTERM)
        _ = try tracer.awaitEnding()
        let text = String(decoding: FileManager.default.contents(atPath: log) ?? Data(), as: UTF8.self)
        return text.split(separator: "\n").count { $0.contains("(INJECTED)") }
    }
}
