import ConformanceKit
import FoundationEssentials
import Glibc
import SystemCalls
import TestSupport
import Testing

/// A program as the receiver of events.
@Suite("Gateway: a program that receives events", .blocking)
struct GatewayEventProgramTests {
    private static let waiting = "onward_events{state=\"waiting\"}"

    /// Runs `body` with a server whose events go to a script of the shell, which runs in a directory of its own.
    private func withProgram(
        _ script: String, _ settings: String..., environment: [String: String] = [:],
        _ body: (ServerProcess, _ directory: String) throws -> Void
    ) throws {
        let directory = try TemporaryDirectory()
        let program = try directory.file(
            "program", Array("#!/bin/sh\ncd '\(directory.path)' || exit 9\n\(script)\n".utf8))
        chmod(program, 0o700)
        try withServer(
            options: ["--events", ([program] + settings).joined(separator: ",")], environment: environment
        ) { try body($0, directory.path) }
    }

    @Test("the program gets the event on standard input, and nothing else of the server's environment")
    func input() throws {
        let script = """
            cat > "$ONWARD_EVENT_ID.json" && env | cut -d = -f 1 | sort > names
            ls /proc/$$/fd > descriptors
            echo "$ONWARD_EVENT_TYPE" >> types
            """
        try withProgram(script, environment: ["ONWARD_LOG_FORMAT": "text", "SECRET": "x", "LANG": "C.UTF-8"]) {
            server, directory in
            let location = try server.begin(.v8, "/files/x", [1])
            #expect(try server.exchange(.append(.v8, location, at: 1, complete: true, .bytes([2]))).status == 201)
            _ = try server.metrics { $0["onward_events_delivered_total"] == 2 }
            #expect(textOfFile(directory + "/types") == "onward.upload.created\nonward.upload.completed\n")
            let names = Set(textOfFile(directory + "/names").split(separator: "\n").map(String.init))
            // The shell itself adds the last variables.
            let allowed: Set = [
                "PATH", "HOME", "LANG", "TZ", "ONWARD_EVENT_ID", "ONWARD_EVENT_TYPE", "PWD", "OLDPWD", "SHLVL", "_",
            ]
            #expect(
                names.isSubset(of: allowed) && names.isSuperset(of: ["PATH", "LANG", "ONWARD_EVENT_ID"]), "\(names)")
            let files = try FileManager.default.contentsOfDirectory(atPath: directory).filter { $0.hasSuffix(".json") }
            #expect(files.count == 2)
            for file in files {
                let event = try JSONDecoder().decode(
                    ReceivedEvent.self, from: Data(textOfFile(directory + "/" + file).utf8))
                #expect(event.id + ".json" == file && event.data.target == "/files/x")
            }
            // The shell has its script and its saved output in addition.
            let descriptors = Set(textOfFile(directory + "/descriptors").split(separator: "\n").map(String.init))
            #expect(descriptors.isSubset(of: ["0", "1", "2", "10", "11", "255"]), "\(descriptors)")
            #expect(!server.log.contains("could not be delivered"), "\(server.log)")
        }
    }

    @Test("an event is sent again until the exit status is 0; the log has the beginning of standard error")
    func status() throws {
        let script = """
            cat > /dev/null; echo x >> runs; [ -e second ] && exit 0
            touch second; echo "no space left: $ONWARD_EVENT_TYPE" >&2; echo "second line" >&2; exit 3
            """
        try withProgram(script) { server, directory in
            try server.store(["/files/x"])
            _ = try server.metrics { $0["onward_events_delivered_total"] == 1 }
            #expect(textOfFile(directory + "/runs") == "x\nx\n")
            #expect(
                server.log.contains("no space left: onward.upload.completed second line; the server will try again"))
            #expect(server.log.contains("status 3"), "\(server.log)")
        }
    }

    @Test("a program that ignores its input counts by its status, and the processes that it started are ended")
    func detached() throws {
        try withProgram("echo $$ > first; sleep 300 & echo $! > child; exit 0") { server, directory in
            try server.store(["/files/x"])
            _ = try server.metrics { $0["onward_events_delivered_total"] == 1 }
            let child = try #require(pid_t(textOfFile(directory + "/child").dropLast()))
            #expect(pollUntil(within: .seconds(10)) { Self.isRunning(child) ? nil : true } == true)
        }
    }

    @Test("after the time limit the program and its processes get SIGTERM, and SIGKILL a second later")
    func timeout() throws {
        let script = """
            trap 'echo TERM >> signals' TERM
            (trap '' TERM; sleep 300 & echo $! > child; wait; sleep 300) &
            echo $! > background; echo $$ > self; while :; do sleep 0.1; done
            """
        try withProgram(script, "timeout=1s") { server, directory in
            try server.store(["/files/x"])
            _ = try server.metrics { $0["onward_events_failed_attempts_total"] >= 1 }
            #expect(textOfFile(directory + "/signals").hasPrefix("TERM\n"))
            // The attempt is counted before it is logged.
            try CheckFixture.expectLog(server, "exceeded the time limit")
            let event = String(try server.events("list").output.prefix(32))
            #expect(try server.events("drop", event).output == "events dropped: 1\n")
            for name in ["self", "background", "child"] {
                let process = try #require(pid_t(textOfFile(directory + "/" + name).dropLast()))
                // The event may have been tried again in the meantime.
                #expect(pollUntil(within: .seconds(20)) { Self.isRunning(process) ? nil : true } == true, "\(name)")
            }
        }
    }

    /// Whether a process exists and is no zombie.
    private static func isRunning(_ process: pid_t) -> Bool {
        let status = FileManager.default.contents(atPath: "/proc/\(process)/stat") ?? Data()
        let text = String(decoding: status, as: UTF8.self)
        return !text.isEmpty && !text.contains(") Z ")
    }

    @Test("output without an end needs no memory, and does not hold up the program")
    func output() throws {
        let script = "head -c 300000000 /dev/zero; head -c 300000000 /dev/zero >&2; exit 0"
        try withProgram(script) { server, _ in
            try server.store(["/files/warm"])
            _ = try server.metrics { $0["onward_events_delivered_total"] == 1 }
            let before = try #require(server.process.peakResidentBytes())
            try server.store(["/files/x", "/files/y"])
            _ = try server.metrics { $0["onward_events_delivered_total"] == 3 }
            #expect(try #require(server.process.peakResidentBytes()) < before + (8 << 20))
        }
    }

    @Test("a program that disappears is tried again; SIGTERM ends the server within five seconds")
    func missing() throws {
        try withProgram("[ -e stay ] && { trap '' TERM; sleep 300; }; cat > got") { server, directory in
            let moved = directory + "/moved"
            #expect(rename(directory + "/program", moved) == 0)
            try server.store(["/files/x"])
            _ = try server.metrics { $0["onward_events_failed_attempts_total"] >= 1 }
            try server.awaitLog("could not be started: No such file")
            #expect(rename(moved, directory + "/program") == 0)
            _ = try server.metrics { $0["onward_events_delivered_total"] == 1 }
            #expect(FileManager.default.createFile(atPath: directory + "/stay", contents: nil))
            try server.store(["/files/y"])
            _ = try server.metrics { $0[Self.waiting] >= 1 }
            #expect(try server.stop(within: .seconds(5)) == .exited(0))
        }
    }
}
