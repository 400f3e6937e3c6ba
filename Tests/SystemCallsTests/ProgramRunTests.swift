import Glibc
import TestSupport
import Testing

@testable import SystemCalls

@Suite("Runs of programs", .timeLimit(.minutes(15)))
struct ProgramRunTests {
    /// A run of a script by `/bin/sh`.
    private static func run(
        _ script: String, arguments: [String] = [], variables: [(name: String, value: String)] = [],
        input: ProgramRun.Input = .bytes([]), timeout: Duration = .seconds(120), maxOutput: Int = 64 << 10,
        isCanceled: () -> Bool = { false }
    ) -> ProgramRun.Result {
        var run = ProgramRun(
            "/bin/sh", arguments: ["-c", script, "sh"] + arguments, variables: variables, input: input,
            timeout: timeout)
        run.maxOutput = maxOutput
        return run.run(isCanceled: isCanceled)
    }

    private static func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

    @Test("A run has the status, the output and the errors of the program")
    func result() {
        let result = Self.run(
            "cat; echo \"$1\"; echo problem >&2; exit 3", arguments: ["a b"], input: .bytes([65, 10]))
        #expect(result.outcome == .ended(.exited(3)))
        #expect(Self.text(result.output) == "A\na b\n")
        #expect(Self.text(result.errors) == "problem\n")
        #expect(!result.isOutputCut)
    }

    @Test("A program that a signal ends has this signal as its outcome")
    func signal() {
        #expect(Self.run("kill -SEGV $$").outcome == .ended(.signaled(SIGSEGV)))
    }

    @Test("A program gets the given variables, the inherited variables, and no others")
    func environment() throws {
        setenv("ONWARD_TEST_SECRET", "secret", 1)
        defer { unsetenv("ONWARD_TEST_SECRET") }
        let result = ProgramRun("/usr/bin/env", variables: [("ONWARD_METHOD", "PUT\nx")], timeout: .seconds(120)).run()
        let text = Self.text(result.output)
        #expect(text.contains("ONWARD_METHOD=PUT\nx\n"))
        #expect(text.contains("PATH=/"))
        #expect(!text.contains("secret"))
        let names = Set(text.split(separator: "\n").compactMap { $0.split(separator: "=").first.map(String.init) })
        #expect(names.subtracting(ProgramRun.inheritedVariables + ["ONWARD_METHOD", "x"]).isEmpty)
    }

    @Test("A program has no descriptors of the server but 0, 1 and 2")
    func descriptors() throws {
        // Unlike the server's own descriptors, this one is not closed on exec.
        let inherited = open("/dev/null", O_RDONLY)
        try #require(inherited > 2)
        defer { close(inherited) }
        // `ls` itself opens the directory as 3.
        let result = ProgramRun("/bin/ls", arguments: ["/proc/self/fd"], timeout: .seconds(120)).run()
        #expect(Self.text(result.output) == "0\n1\n2\n3\n")
    }

    @Test("A program has the default actions of signals, and blocks none")
    func signalActions() {
        let result = ProgramRun("/bin/grep", arguments: ["^Sig[BI]", "/proc/self/status"], timeout: .seconds(120)).run()
        let lines = Self.text(result.output).split(separator: "\n")
        #expect(lines.count == 2)
        for line in lines {
            // The C library reserves signals from 32 on for itself.
            let signals = line.split(separator: "\t").last.flatMap { UInt64($0, radix: 16) }
            #expect(signals.map { $0 & 0x7FFF_FFFF } == 0, "\(line)")
        }
    }

    @Test("The input can be a file, which is read from the offset of its descriptor on")
    func fileInput() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/input"
        let file = try FileDescriptor.open(path, [.readWrite, .create])
        try file.write(Array("some content".utf8), at: 0)
        unlink(path)
        let reader = try file.reopenedForReading()
        #expect(Self.text(Self.run("cat", input: .file(reader)).output) == "some content")
        #expect(Self.text(Self.run("cat", input: .file(try file.reopenedForReading())).output) == "some content")
        #expect(Self.run("echo >&0", input: .file(try file.reopenedForReading())).outcome != .ended(.exited(0)))
    }

    /// The input 0, 1, 2, … modulo 251, with this number of bytes.
    private static func stream(_ length: Int64) -> ProgramRun.Input {
        .stream { buffer, offset in
            let count = min(Int64(buffer.count), length - offset)
            for index in 0..<Int(count) { buffer[index] = UInt8((offset + Int64(index)) % 251) }
            return Int(count)
        }
    }

    @Test("The input can be a stream of bytes that are in no file")
    func streamedInput() {
        let result = Self.run("tail -c 3 | od -An -tu1; ", input: Self.stream(3_000_000))
        #expect(Self.text(result.output).split(separator: " ").map { $0.filter(\.isNumber) } == ["45", "46", "47"])
        #expect(Self.run("cat", input: Self.stream(0)).output == [])
    }

    @Test("A program need not read a stream to its end")
    func unreadStream() {
        #expect(Self.run("exec 0<&-; echo done", input: Self.stream(.max)).outcome == .ended(.exited(0)))
        // A process that leaves the group keeps the pipe open, and reads nothing.
        let result = Self.run("setsid sleep 2 & echo done", input: Self.stream(.max))
        #expect(result.outcome == .ended(.exited(0)))
    }

    @Test("If the input of a program could not be read, the outcome is `inputFailed`, whatever its status is")
    func failedStream() {
        let result = Self.run("cat > /dev/null; echo accepted", input: .stream { _, offset in offset > 0 ? nil : 100 })
        #expect(result.outcome == .inputFailed)
    }

    @Test("A program need not read its input")
    func unreadInput() {
        let result = Self.run("exec 0<&-; echo done", input: .bytes([UInt8](repeating: 1, count: 4 << 20)))
        #expect(result.outcome == .ended(.exited(0)))
        #expect(Self.text(result.output) == "done\n")
    }

    @Test("Output above the limit is discarded, and does not block the program")
    func largeOutput() {
        let result = Self.run("head -c 10000000 /dev/zero; head -c 10000000 /dev/zero >&2; exit 7", maxOutput: 1000)
        #expect(result.outcome == .ended(.exited(7)))
        #expect(result.output.count == 1000)
        #expect(result.isOutputCut)
        #expect(result.errors.count == 4 << 10)
        let exact = Self.run("printf 12345", maxOutput: 5)
        #expect(exact.output.count == 5)
        #expect(!exact.isOutputCut)
    }

    @Test("A program that runs too long is ended, and also the processes that it started")
    func timeout() throws {
        let result = Self.run("sleep 1000 & echo $!; wait", timeout: .milliseconds(200))
        #expect(result.outcome == .timedOut)
        #expect(awaitEnd(of: try #require(pid_t(Self.text(result.output).dropLast()))))
    }

    @Test("A program that ignores SIGTERM is killed")
    func ignoredSignal() throws {
        let script = "trap '' TERM; echo $$; while :; do sleep 0.01; done"
        let result = Self.run(script, timeout: .milliseconds(200))
        #expect(result.outcome == .timedOut)
        #expect(awaitEnd(of: try #require(pid_t(Self.text(result.output).dropLast()))))
    }

    @Test("A program that writes without end is ended in time")
    func endlessOutput() {
        let result = Self.run("exec cat /dev/zero", timeout: .milliseconds(200))
        #expect(result.outcome == .timedOut)
        #expect(result.output.count == 64 << 10)
        #expect(result.isOutputCut)
    }

    @Test("A canceled run ends the program")
    func cancellation() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/started"
        let result = Self.run("echo $$ | tee \(path); exec sleep 1000", isCanceled: { access(path, F_OK) == 0 })
        #expect(result.outcome == .canceled)
        let bytes = try FileDescriptor.open(path, .readOnly).content(atMost: 100)
        if let process = pid_t(Self.text(bytes).dropLast()) { #expect(awaitEnd(of: process)) }
    }

    @Test("A process that keeps the output open ends with the program")
    func remainingProcess() throws {
        let result = Self.run("sleep 1000 & echo $!")
        #expect(result.outcome == .ended(.exited(0)))
        #expect(awaitEnd(of: try #require(pid_t(Self.text(result.output).dropLast()))))
    }

    @Test("A process that leaves the group and keeps writing does not block the run")
    func escapedProcess() throws {
        let script = "setsid sh -c 'echo $$ >&2; exec cat /dev/zero' & exec sleep 0.2"
        let result = Self.run(script)
        #expect(result.outcome == .ended(.exited(0)))
        if let process = pid_t(Self.text(result.errors).dropLast()) { Glibc.kill(process, SIGKILL) }
    }

    @Test("A program that closes its outputs is awaited")
    func closedOutputs() {
        #expect(Self.run("exec >&- 2>&-; sleep 0.1; exit 4").outcome == .ended(.exited(4)))
    }

    @Test("A program that cannot be started has the error of the system as its outcome")
    func notStarted() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/program"
        func outcome(_ program: String, _ arguments: [String] = []) -> ProgramRun.Outcome {
            ProgramRun(program, arguments: arguments, timeout: .seconds(1)).run().outcome
        }
        #expect(outcome(path) == .notStarted(.noSuchFile))
        #expect(outcome("bin/sh") == .notStarted(.invalidArgument))
        #expect(outcome("/bin/sh", ["a\0b"]) == .notStarted(.invalidArgument))
        #expect(outcome(directory.path) == .notStarted(.accessDenied))
        try FileDescriptor.open(path, [.writeOnly, .create], mode: 0o600).write(Array("#!/bin/sh\n".utf8), at: 0)
        #expect(outcome(path) == .notStarted(.accessDenied))
        #expect("\(outcome(directory.path + "/none"))" == "could not be started: No such file or directory (ENOENT)")
    }

    @Test("Many runs at the same time are independent")
    func concurrency() async throws {
        let results = try await withThrowingTaskGroup(of: (Int, ProgramRun.Result).self) { group in
            for number in 0..<32 {
                group.addTask {
                    let input = Array("\(number)".utf8)
                    return (number, try await WorkerThread.run(name: "run") { Self.run("cat", input: .bytes(input)) })
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(results.count == 32)
        for (number, result) in results {
            #expect(result.outcome == .ended(.exited(0)))
            #expect(Self.text(result.output) == "\(number)")
        }
    }
}
