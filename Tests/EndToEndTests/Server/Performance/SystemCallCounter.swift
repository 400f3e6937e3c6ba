import FoundationEssentials
import Glibc
import TestSupport

/// Counts the system calls of a running process with strace(1), until ``end()``.
final class SystemCallCounter {
    private let tracer: ChildProcess
    private let log: String

    init(of server: ServerProcess) throws {
        log = server.directory.path + "/counts-" + String(UInt32.random(in: 0 ... .max))
        tracer = try ChildProcess(
            "/usr/bin/strace",
            ["-f", "-c", "-U", "calls,name", "-p", String(server.process.identifier), "-o", log])
        _ = try tracer.awaitErrorOutput { $0.contains(" attached") ? true : nil }
    }

    /// Removes strace from the process, which continues.
    /// - Returns: The number of each call that was made.
    func end() throws -> [String: Int] {
        tracer.kill(SIGTERM)
        _ = try tracer.awaitEnding()
        let text = String(decoding: FileManager.default.contents(atPath: log) ?? Data(), as: UTF8.self)
        // When strace attaches, it interrupts the calls in which threads wait, and the system restarts them.
        let ignored: Set<Substring> = ["total", "restart_syscall"]
        var counts: [String: Int] = [:]
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ")
            guard words.count == 2, let count = Int(words[0]), !ignored.contains(words[1]) else { continue }
            counts[String(words[1])] = count
        }
        return counts
    }
}
