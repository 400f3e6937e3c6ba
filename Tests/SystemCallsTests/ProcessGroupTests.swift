import Glibc
import TestSupport
import Testing

@testable import SystemCalls

@Suite("Process groups", .timeLimit(.minutes(15)))
struct ProcessGroupTests {
    private static func ending(of group: ProcessGroup) -> ProcessGroup.Ending? {
        while group.currentEnding == nil { usleep(1000) }
        return group.currentEnding
    }

    @Test("The ending of a command contains its status, and its output is written to the file")
    func status() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/output"
        let group = try ProcessGroup(shell: "echo out; echo err >&2; exit 3", output: path)
        #expect(Self.ending(of: group) == .exited(3))
        let bytes = try FileDescriptor.open(path, .readOnly).content(atMost: 100)
        #expect(String(decoding: bytes, as: UTF8.self) == "out\nerr\n")
        group.kill()
        #expect(group.currentEnding == .exited(3))
    }

    @Test("An ending is described in words")
    func descriptions() {
        #expect("\(ProcessGroup.Ending.exited(1))" == "exited with status 1")
        #expect("\(ProcessGroup.Ending.signaled(9))" == "was ended by signal 9")
    }

    @Test("A signal and a kill reach the command and the processes that it started")
    func kill() throws {
        let first = try ProcessGroup(shell: "sleep 100 & wait", output: "/dev/null")
        first.signal(SIGTERM)
        #expect(Self.ending(of: first) == .signaled(SIGTERM))
        let second = try ProcessGroup(shell: "sleep 100 & wait", output: "/dev/null")
        second.kill()
        #expect(second.currentEnding == .signaled(SIGKILL))
        while second.isRunning { usleep(1000) }
    }

    @Test("A group runs until its last process has ended, even if the command ended before")
    func members() throws {
        let group = try ProcessGroup(shell: "sleep 100 & exit 0", output: "/dev/null")
        #expect(Self.ending(of: group) == .exited(0))
        #expect(group.isRunning)
        Glibc.kill(-group.identifier, SIGKILL)
        while group.isRunning { usleep(1000) }
    }

    @Test("A group that is killed or released after its command has ended leaves no process", arguments: [true, false])
    func leftMembers(isReleased: Bool) throws {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/process"
        var group: ProcessGroup? = try ProcessGroup(shell: "sleep 100 & echo $!", output: path)
        #expect(Self.ending(of: try #require(group)) == .exited(0))
        if isReleased { group = nil } else { group?.kill() }
        let bytes = try FileDescriptor.open(path, .readOnly).content(atMost: 100)
        let member = try #require(pid_t(String(decoding: bytes.dropLast(), as: UTF8.self)))
        #expect(awaitEnd(of: member))
        #expect(group?.currentEnding == (isReleased ? nil : .exited(0)))
    }
}
