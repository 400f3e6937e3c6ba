import FoundationEssentials
import Glibc
import SystemCalls
import TestSupport
import Testing

/// A command whose standard output and standard error are not read: the transfer does not wait for a reader.
@Suite("Commands: outputs that are not read", .blocking)
struct BlockedReportTests {
    /// A command whose two outputs are a full pipe.
    private final class Run {
        let process: ChildProcess
        private let reader: FileDescriptor

        init(_ home: CommandHome, _ words: [String]) throws {
            var ends: [Int32] = [0, 0]
            guard pipe(&ends) == 0 else { throw Errno.current }
            for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
            reader = FileDescriptor(owning: ends[0])
            let writer = FileDescriptor(owning: ends[1])
            UnreadOutput.fill(writer)
            process = try ChildProcess(
                "/bin/sh", ["-c", "exec \"$0\" \"$@\" 1>&3 2>&3 3>&-", try ExecutableLocation.onward()] + words,
                environment: ["HOME": home.path, "XDG_STATE_HOME": home.path + "/state"],
                descriptors: [writer.rawValue])
        }

        /// Reads all lines until the process has ended.
        func readLines() throws -> [Substring] {
            var bytes: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 65_536)
            while case let count = read(reader.rawValue, &buffer, buffer.count), count != 0 {
                if count > 0 { bytes += buffer[..<count] } else if errno != EINTR { throw Errno.current }
            }
            return String(decoding: bytes, as: UTF8.self).split(separator: "\n").filter { !$0.hasPrefix("#") }
        }
    }

    private let bytes = Payload.bytes(3_000_000)

    private func expectDone(_ home: CommandHome, _ isThere: () -> Bool) {
        #expect(eventually { isThere() && home.stateNames.isEmpty })
    }

    @Test(
        "put completes, and its last lines are kept for a reader that reads later",
        arguments: [[], ["--json"], ["--verbose"], ["--json", "--verbose"]])
    func put(options: [String]) throws {
        try withServer { server in
            let home = try CommandHome()
            let run = try Run(home, ["put"] + options + [try home.file(bytes), server.url("/files/a.bin")])
            expectDone(home) { server.published("a.bin") == bytes }
            let lines = try run.readLines()
            #expect(try run.process.awaitEnding() == .exited(0))
            let isJSON = options.contains("--json")
            #expect(lines.contains { $0.hasPrefix(isJSON ? "{\"event\":\"completed\"" : "Sent big.bin") }, "\(lines)")
            #expect(lines.contains { $0.hasPrefix(isJSON ? "{\"event\":\"started\"" : "Sending big.bin") }, "\(lines)")
            #expect(lines.contains { $0.hasPrefix("> PUT ") } == options.contains("--verbose"), "\(lines)")
        }
    }

    @Test("a signal ends a completed command that waits for its reader, with status 0", arguments: ["put", "get"])
    func completed(command: String) throws {
        try withServer { server in
            let home = try CommandHome()
            if command == "get" { try server.publish(bytes, as: "a.bin") }
            let url = server.url("/files/a.bin")
            let path = home.path + "/fetched"
            let words = command == "put" ? ["put", try home.file(bytes), url] : ["get", url, "-o", path]
            let run = try Run(home, words)
            expectDone(home) {
                command == "put"
                    ? server.published("a.bin") == bytes : FileManager.default.contents(atPath: path) == Data(bytes)
            }
            run.process.kill(SIGTERM)
            #expect(try run.process.awaitEnding(within: .seconds(20)) == .exited(0))
        }
    }

    @Test("SIGTERM pauses a transfer and ends the command, and the same command resumes", arguments: [[], ["--json"]])
    func terminated(options: [String]) throws {
        try withServer { server in
            let home = try CommandHome()
            let proxy = try HoldingProxy(upstream: server.port, limit: 500_000)
            let words = ["put"] + options + [try home.file(bytes), proxy.url + "/files/a.bin"]
            let run = try Run(home, words)
            #expect(eventually { server.unfinished.values.contains { $0 > 100_000 } })
            run.process.kill(SIGTERM)
            #expect(try run.process.awaitEnding(within: .seconds(20)) == .exited(75))
            proxy.release()
            try home.run(words).expect(0)
            expectSame(server.published("a.bin") ?? [], bytes)
        }
    }
}
