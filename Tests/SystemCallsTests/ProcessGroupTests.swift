import Glibc
import Testing

@testable import SystemCalls

@Suite("Process groups", .timeLimit(.minutes(15)))
struct ProcessGroupTests {
    private static func ending(of group: ProcessGroup) -> ProcessGroup.Ending? {
        while group.currentEnding == nil { usleep(1000) }
        return group.currentEnding
    }

    @Test("A command ends with its status, and its output is in the file")
    func status() throws {
        var template = Array("/tmp/process-group-XXXXXX".utf8CString)
        let output = FileDescriptor(owning: mkstemp(&template))
        let path = template.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } ?? "" }
        defer { unlink(path) }
        let group = try ProcessGroup(shell: "echo out; echo err >&2; exit 3", output: path)
        #expect(Self.ending(of: group) == .exited(3))
        var bytes = [UInt8](repeating: 0, count: 100)
        let count = pread(output.rawValue, &bytes, bytes.count, 0)
        #expect(String(decoding: bytes.prefix(max(0, count)), as: UTF8.self) == "out\nerr\n")
        group.kill()
        #expect(group.currentEnding == .exited(3))
    }

    @Test("A signal and a kill reach the command and what it started")
    func kill() throws {
        let first = try ProcessGroup(shell: "sleep 100 & wait", output: "/dev/null")
        first.signal(SIGTERM)
        #expect(Self.ending(of: first) == .signaled(SIGTERM))
        let second = try ProcessGroup(shell: "sleep 100 & wait", output: "/dev/null")
        second.kill()
        #expect(second.currentEnding == .signaled(SIGKILL))
        while second.isRunning { usleep(1000) }
    }

    @Test("A group runs until the last of its processes has ended, whatever became of its command")
    func members() throws {
        let group = try ProcessGroup(shell: "sleep 100 & exit 0", output: "/dev/null")
        #expect(Self.ending(of: group) == .exited(0))
        #expect(group.isRunning)
        Glibc.kill(-group.identifier, SIGKILL)
        while group.isRunning { usleep(1000) }
    }
}
