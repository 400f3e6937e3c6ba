import Foundation
import SystemCalls
import TestSupport
import Testing

@testable import ConformanceKit

/// Tests of the output and the exit status of the executable.
@Suite("onward-conformance", .timeLimit(.minutes(15)))
struct CommandTests {
    @Test("list prints the cases with their requirements, and the uncovered requirements")
    func list() async throws {
        let (status, output) = try await Self.run("list")
        #expect(status == .exited(0))
        #expect(output.contains("4.4/offset-mismatch") && output.contains("APP-05"))
        #expect(output.contains("4.4/conflict-offset") && output.contains("CLI-32"))
        #expect(output.contains("the requirement is about HTTP/2"))
    }

    @Test(
        "For an invalid command line the program prints one line and a reference to the help, and ends with status 2",
        arguments: [
            "", "verify", "server", "server --profile 9 http://127.0.0.1:1/", "server --timeout 0 http://127.0.0.1:1/",
            "server --header nonsense http://127.0.0.1:1/", "server --json", "server --nonsense http://127.0.0.1:1/",
            "server http://127.0.0.1:1/ http://127.0.0.1:1/", "client", "client --command true",
            "client --command 'put {file} {url}' --runs 0", "client --nonsense",
            "server --disk 5M http://127.0.0.1:1/",
            "server --start x --disk 5", "proxy", "proxy --upstream-port 0 http://127.0.0.1:1/", "matrix",
            "matrix =nofile", "matrix name=", "list all", "client file",
            "server --method 'a b' http://127.0.0.1:1/", "proxy --method '' http://127.0.0.1:1/",
            "server --cacert nofile https://127.0.0.1:1/", "server --cacert /dev/null https://127.0.0.1:1/",
            "proxy --cacert / https://127.0.0.1:1/",
        ])
    func misuse(_ arguments: String) async throws {
        let (status, output) = try await Self.run(arguments)
        #expect(status == .exited(2))
        let word = arguments.prefix { $0 != " " }
        let command = ["", "verify"].contains(word) ? "" : " \(word)"
        let lines = output.split(separator: "\n")
        #expect(lines.count == 2, "\(output)")
        #expect(lines.first?.hasPrefix("onward-conformance\(command): ") == true, "\(output)")
        #expect(lines.last == "See 'onward-conformance\(command) --help'.")
    }

    @Test(
        "If the server cannot be tested, the program reports the reason and ends with status 2",
        arguments: [
            (
                "server http://127.0.0.1:1/",
                "the server at 127.0.0.1:1 cannot be reached: Connection refused (ECONNREFUSED)"
            ),
            (
                "server https://127.0.0.1:1/",
                "the server at 127.0.0.1:1 cannot be reached: Connection refused (ECONNREFUSED)"
            ),
            ("proxy http://127.0.0.1:1/", "the server at 127.0.0.1:1 cannot be reached: Connection refused"),
            ("server http://nohost.invalid/", "cannot be reached: the host nohost.invalid cannot be found"),
            (
                "proxy --upstream-port 1 --upstream-address nohost.invalid http://127.0.0.1:1/",
                "cannot listen on nohost.invalid:1: the host nohost.invalid cannot be found"
            ),
            ("server --start 'exit 3; : {port} {root}'", "exited with status 3 before it listened on port"),
            ("server --start 'kill -9 $$; : {port} {root}'", "was ended by signal 9 before it listened on port"),
            ("server --start 'true & : {port} {root}'", "exited with status 0 before it listened on port"),
        ])
    func noServer(_ arguments: String, _ reason: String) async throws {
        let (status, output) = try await Self.run(arguments)
        #expect(status == .exited(2))
        #expect(output.contains(reason), "\(output)")
        for text in ["supports no version", "sends no 104", "0 cases"] { #expect(!output.contains(text), "\(output)") }
    }

    @Test("A file that cannot be read or written is reported in one sentence, and the status is 2")
    func unusableFiles() async throws {
        let directory = try TemporaryDirectory()
        let other = try directory.file("other.json", "{}".utf8)
        let missing = directory.path + "/none/report"
        let server = try ReferenceServer()
        let client = "client --command 'curl -sS -f -T {file} {url}' --only 4.2/complete"
        for (arguments, reason) in [
            ("matrix \(missing)", "matrix: \(missing) cannot be read: No such file or directory (ENOENT)"),
            ("matrix a=\(missing)", "matrix: \(missing) cannot be read: No such file or directory (ENOENT)"),
            ("matrix \(directory.path)", "matrix: \(directory.path) cannot be read: Is a directory (EISDIR)"),
            (
                "matrix \(other)",
                "matrix: \(other) is not a JSON report of the server or client mode: version is missing"
            ),
            (
                "server \(server.url) --only 4.2/create-empty --json \(missing)",
                "server: \(missing) cannot be written: No such file or directory (ENOENT)"
            ),
            (
                "server \(server.url) --only 4.2/create-empty --junit \(directory.path)",
                "server: \(directory.path) cannot be written: Is a directory (EISDIR)"
            ),
            (
                "server \(server.url) --only 4.2/create-empty --html /dev/full",
                "server: /dev/full cannot be written: No space left on device (ENOSPC)"
            ),
            ("\(client) --json \(missing)", "client: \(missing) cannot be written: No such file or directory (ENOENT)"),
        ] {
            let (status, output) = try await Self.run(arguments)
            #expect(status == .exited(2), "\(arguments)")
            let lines = output.split(separator: "\n")
            #expect(lines.last == "onward-conformance \(reason)", "\(output)")
            // Only a device without space is noticed after the run.
            if !arguments.contains("/dev/full") { #expect(lines.count == 1, "\(output)") }
        }
        withExtendedLifetime(server) {}
    }

    @Test(
        "After SIGINT or SIGTERM the program ends the programs that it started, and removes its temporary directories",
        arguments: [SIGINT, SIGTERM],
        ["server --start", "client --command"])
    func signals(_ signal: Int32, _ mode: String) async throws {
        try await interrupt(by: signal, "\(mode) 'echo $$ >PROCESS; exec sleep 1000; : {root} {port} {file} {url}'")
    }

    @Test(
        "SIGINT and SIGTERM also end what the command has started in the background", arguments: [SIGINT, SIGTERM],
        ["server --start", "client --command"])
    func backgroundSignals(_ signal: Int32, _ mode: String) async throws {
        // The client has to run until the signal arrives.
        let end = mode.hasPrefix("client") ? "sleep 1000" : ":"
        try await interrupt(
            by: signal, "\(mode) 'sleep 1000 & echo $! >PROCESS; \(end); : {root} {port} {file} {url}'")
    }

    /// Runs the program until the command in `arguments` has written its process ID to the file PROCESS, and sends the
    /// signal. Expects that the process ends, and that nothing is left.
    private func interrupt(by signal: Int32, _ arguments: String) async throws {
        let directory = try TemporaryDirectory()
        let temporary = directory.path + "/temporary"
        try FileManager.default.createDirectory(atPath: temporary, withIntermediateDirectories: false)
        let process = directory.path + "/process"
        let arguments = arguments.replacing("PROCESS", with: process)
        let shell = try "export TMPDIR=\(temporary); exec \(Self.executable()) \(arguments)"
        let (ending, output) = try await onThread {
            let run = try ProcessGroup(shell: shell, output: directory.path + "/txt")
            let started: Bool? = pollUntil(within: .seconds(60)) {
                (try? String(contentsOfFile: process, encoding: .utf8))?.hasSuffix("\n") == true ? true : nil
            }
            guard started != nil else { throw TestFailure("the command was not started") }
            run.signal(signal)
            let ending = pollUntil(within: .seconds(60)) { run.currentEnding }
            return (ending, try String(contentsOfFile: directory.path + "/txt", encoding: .utf8))
        }
        #expect(ending == .exited(128 + signal), "\(output)")
        #expect(!output.contains("ended"), "\(output)")
        #expect(try FileManager.default.contentsOfDirectory(atPath: temporary) == [])
        #expect(try Self.awaitEnd(ofProcessIn: process))
    }

    @Test("A server that the command has started in the background is tested, restarted, and killed at the end")
    func backgroundServer() async throws {
        let directory = try TemporaryDirectory()
        let process = directory.path + "/process"
        let server = try "\(ExecutableLocation.onward()) serve --root {root} --listen 127.0.0.1:{port} --min-free 0"
        let (status, output) = try await Self.run(
            "server --start '\(server) & echo $! >>\(process)' --only 4.2/create-empty --only restart/offset-kept")
        #expect(status == .exited(0), "\(output)")
        let text = try String(contentsOfFile: process, encoding: .utf8)
        #expect(text.split(separator: "\n").count > 1, "\(text)")
        #expect(try Self.awaitEnd(ofProcessIn: process), "\(output)")
    }

    /// Waits until the processes in the lines of a file have ended: the kernel ends a process some time after the signal.
    /// - Returns: whether they have ended in time.
    private static func awaitEnd(ofProcessIn path: String) throws -> Bool {
        let end = ContinuousClock.now + .seconds(30)
        while try isRunning(processIn: path) {
            if ContinuousClock.now > end { return false }
            usleep(10_000)
        }
        return true
    }

    /// Whether one of the processes in the lines of a file runs. A process that has ended counts as not
    /// running, even if its parent has not waited for it.
    private static func isRunning(processIn path: String) throws -> Bool {
        try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n").contains { line in
            let identifier = try #require(pid_t(line))
            guard let status = try? String(contentsOfFile: "/proc/\(identifier)/stat", encoding: .utf8) else {
                return false
            }
            return status.split(separator: ")").last?.hasPrefix(" Z") != true
        }
    }

    @Test("The report of a server that cannot be reached does not state whether the server sends 104")
    func unknownAnnouncements() async throws {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/json"
        let (status, _) = try await Self.run("server http://127.0.0.1:1/ --json \(path)")
        #expect(status == .exited(2))
        let document = try JSONSerialization.jsonObject(with: Data(contentsOf: URL(fileURLWithPath: path)))
        let subject = try #require((document as? [String: Any])?["subject"] as? [String: Any])
        #expect(subject["url"] as? String == "http://127.0.0.1:1/" && subject["sends104"] == nil)
    }

    @Test("The results are written to the terminal and to a JSON document with a fixed schema")
    func report() async throws {
        let server = try ReferenceServer(.dropsOffsetOn409)
        let directory = try TemporaryDirectory()
        let path = directory.path + "/json"
        let (status, output) = try await Self.run(
            "server \(server.url) --header 'X-Test: a' --profile 8 --only '4.4/*mismatch*' --only 4.2/create-empty --json \(path)"
        )
        #expect(status == .exited(1))
        #expect(output.contains("✗ must   mismatch-offset") && output.contains("Does not conform."))
        #expect(output.contains("> PATCH /uploads/") && output.contains("> X-Test: a"))
        let document = try JSONSerialization.jsonObject(with: Data(contentsOf: URL(fileURLWithPath: path)))
        let members = try #require(document as? [String: Any])
        #expect(members["version"] as? Int == 1)
        #expect(members["exitStatus"] as? Int == 1)
        #expect((members["subject"] as? [String: Any])?["sends104"] as? Bool == true)
        let cases = try #require(members["cases"] as? [[String: Any]])
        let failed = try #require(cases.first { $0["id"] as? String == "4.4/mismatch-offset" })
        #expect(failed["outcome"] as? String == "fail")
        #expect(failed["expected"] as? String == "Upload-Offset: 10")
        #expect((failed["command"] as? String)?.contains("curl") == true)
        let transcript = try #require(failed["transcript"] as? [[String: Any]])
        #expect(transcript.contains { ($0["text"] as? String)?.hasPrefix("HTTP/1.1 104 ") == true })
        let strict = try await Self.run("server \(server.url) --only 4.2/create-empty --strict")
        #expect(strict.status == .exited(0))
        withExtendedLifetime(server) {}
    }

    @Test("The results of a client are written to a JSON document, with the traffic of each scenario")
    func client() async throws {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/json"
        // This command always ends with status 0.
        let command = "curl -s -H 'Upload-Complete: ?1' -T {file} {url}; true"
        let (status, output) = try await Self.run(
            "client --command \"\(command)\" --only 4.2/no-104 --only 4.2/refused-400 --strict --json \(path)"
                + " --junit \(path).xml --html \(path).html")
        #expect(status == .exited(1), "\(output)")
        for (name, text) in [("xml", "<testcase"), ("html", "Does not conform")] {
            #expect(try String(contentsOfFile: "\(path).\(name)", encoding: .utf8).contains(text))
            try FileManager.default.removeItem(atPath: "\(path).\(name)")
        }
        let document = try JSONSerialization.jsonObject(with: Data(contentsOf: URL(fileURLWithPath: path)))
        let members = try #require(document as? [String: Any])
        #expect(members["mode"] as? String == "client" && members["exitStatus"] as? Int == 1)
        let cases = try #require(members["cases"] as? [[String: Any]])
        #expect(cases.map { $0["outcome"] as? String } == ["pass", "warn"])
        let traffic = try #require(members["traffic"] as? [String: [String: Any]])
        #expect(traffic["4.2/no-104"]?["transferred"] as? Int == 300_000)
    }

    @Test("If a client does not use the draft, only its exit status is verified")
    func plainClient() async throws {
        for (command, status) in [("curl -sS -f -T {file} {url}", Int32(0)), ("curl -s -T {file} {url}; true", 1)] {
            let (ending, output) = try await Self.run(
                "client --command '\(command)' --only 4.3/cut --only 4.4/finish --only 4.2/complete")
            #expect(ending == .exited(status), "\(output)")
            #expect(output.contains(status == 0 ? "1 pass, 2 skipped" : "1 pass, 1 fail, 1 warn"))
        }
    }

    @Test("If the reader closes the pipe, the program ends without an error message")
    func closedPipe() async throws {
        let server = try ReferenceServer()
        let directory = try TemporaryDirectory()
        let fifo = directory.path + "/pipe"
        for (number, arguments) in [
            "list", "--help", "server \(server.url)", "proxy \(server.url)",
            "client --command 'curl -sS -f -T {file} {url}'",
        ].enumerated() {
            // The reader has closed the pipe before the program writes to it.
            let (_, output) = try await Self.runShell(
                "mkfifo \(fifo).\(number); (exec 3<\(fifo).\(number)) & exec 4>\(fifo).\(number); wait $!; "
                    + "\(Self.executable()) \(arguments) >&4; echo status $?")
            try FileManager.default.removeItem(atPath: "\(fifo).\(number)")
            #expect(output == "status \(128 + SIGPIPE)\n", "\(arguments)")
        }
        withExtendedLifetime(server) {}
    }

    @Test("If the disk is full, the program writes one line and ends with status 74")
    func fullDisk() async throws {
        let server = try ReferenceServer()
        for arguments in ["list", "--help", "server \(server.url)", "matrix --help"] {
            let (_, output) = try await Self.runShell("\(Self.executable()) \(arguments) >/dev/full; echo status $?")
            let lines = output.split(separator: "\n")
            #expect(lines.count == 2 && lines.last == "status 74", "\(arguments): \(output)")
            #expect(lines.first?.hasPrefix("onward-conformance: standard output cannot be written: ") == true)
        }
        withExtendedLifetime(server) {}
    }

    private static func run(_ arguments: String) async throws -> (status: ProcessGroup.Ending?, output: String) {
        try await runShell("exec \(executable()) \(arguments)")
    }

    private static func executable() throws -> String { try ExecutableLocation.beside("onward-conformance") }

    private static func runShell(_ command: String) async throws -> (status: ProcessGroup.Ending?, output: String) {
        let directory = try TemporaryDirectory()
        let output = directory.path + "/txt"
        return try await onThread {
            let process = try ProcessGroup(shell: command, output: output)
            defer { withExtendedLifetime(directory) {} }
            return (
                pollUntil(within: .seconds(600)) { process.currentEnding },
                try String(contentsOfFile: output, encoding: .utf8)
            )
        }
    }
}
