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
        #expect(Self.ending(of: first) == .signalled(SIGTERM))
        let second = try ProcessGroup(shell: "sleep 100 & wait", output: "/dev/null")
        second.kill()
        #expect(second.currentEnding == .signalled(SIGKILL))
        // The group has no member left once its killed processes are reaped by whoever inherits them.
        while Glibc.kill(-second.identifier, 0) == 0 && Self.hasRunning(second.identifier) { usleep(1000) }
    }

    /// Whether a process of the group is anything but dead.
    private static func hasRunning(_ group: pid_t) -> Bool {
        guard let directory = opendir("/proc") else { return false }
        defer { closedir(directory) }
        while let entry = readdir(directory) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            guard let identifier = pid_t(name), getpgid(identifier) == group else { continue }
            if Glibc.kill(identifier, 0) == 0, !isZombie(name) { return true }
        }
        return false
    }

    private static func isZombie(_ name: String) -> Bool {
        let file = open("/proc/\(name)/stat", O_RDONLY)
        guard file >= 0 else { return true }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 200)
        let count = read(file, &bytes, bytes.count)
        return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self).contains(") Z ")
    }
}
