import Glibc
import TestSupport

/// Delays system calls of a running process, with strace(1), until ``end()``.
final class DelayInjection {
    private let tracer: ChildProcess

    /// - Parameter calls: names of system calls, separated by commas.
    init(_ calls: String, of server: ServerProcess, microseconds: Int) throws {
        tracer = try ChildProcess(
            "/usr/bin/strace",
            [
                "-f", "-p", String(server.process.identifier), "-e", "trace=" + calls, "-e",
                "inject=\(calls):delay_enter=\(microseconds)", "-o", "/dev/null",
            ])
        _ = try tracer.awaitErrorOutput { $0.contains(" attached") ? true : nil }
    }

    /// Detaches strace from the process; the process continues.
    func end() throws {
        tracer.kill(SIGTERM)
        // If strace ends while a call is delayed, the system completes the call.
        do { _ = try tracer.awaitEnding(within: .seconds(5)) } catch {
            tracer.kill(SIGKILL)
            _ = try tracer.awaitEnding()
        }
    }
}
