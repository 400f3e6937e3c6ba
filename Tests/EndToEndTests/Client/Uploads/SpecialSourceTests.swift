import Foundation
import Glibc
import TestSupport
import Testing

/// A source that is not a file of a fixed size is refused with the reason, before anything is sent.
@Suite("Command: put of sources that are not regular files", .blocking)
struct SpecialSourceTests {
    private func server() throws -> ScriptedServer {
        try ScriptedServer { _, reply in
            try reply.discardContent()
            try reply.respond(201)
        }
    }

    @Test(
        "Files in /proc, devices, directories, pipes and sockets are refused with a reason each",
        arguments: [
            ("/proc/cpuinfo", "size is 0"), ("/proc/version", "size is 0"), ("/dev/null", "is a device"),
            ("/sys/kernel/mm/transparent_hugepage/enabled", "has fewer bytes than its size"),
            ("/proc/self/mem", "cannot be read"), ("/dev/zero", "is a device"), ("/dev/stdin", "is a device"),
            ("/tmp", "is a directory"),
            ("FIFO", "is a pipe"), ("LINK", "is a pipe"), ("SOCKET", "is a socket"),
        ])
    func refused(path: String, reason: String) throws {
        let server = try server()
        let home = try CommandHome()
        var path = path
        if ["FIFO", "LINK", "SOCKET"].contains(path) {
            let kind = path
            path = home.path + "/" + kind
            #expect(mkfifo(home.path + "/FIFO", 0o600) == 0)
            #expect(symlink(home.path + "/FIFO", home.path + "/LINK") == 0)
            #expect(mknod(home.path + "/SOCKET", UInt32(S_IFSOCK) | 0o600, 0) == 0)
        }
        for target in ["/files/", "/files/x"] {
            let run = try home.run("put", path, server.url + target)
            try run.expect(66)
            // "self" is a link to the directory of the process.
            let isNamed = run.errors.contains(path) || path.hasPrefix("/proc/self/")
            #expect(isNamed && run.errors.contains(reason), "\(run.errors)")
        }
        #expect(server.requests.isEmpty)
        #expect(home.stateNames == [])
    }

    @Test("Standard input, as - or as /dev/stdin, is refused if it is a pipe; /dev/stdin is sent if it is a file")
    func standardInput() throws {
        let server = try server()
        let home = try CommandHome()
        let onward = try ExecutableLocation.onward()
        func run(_ script: String) throws -> (ChildProcess.Ending, String) {
            let process = try ChildProcess(
                "/bin/sh", ["-c", script, onward, server.url + "/x", try home.file([1, 2, 3])],
                environment: ["HOME": home.path])
            return (try process.awaitEnding(), process.errorOutput)
        }
        let (ending, text) = try run("printf x | \"$0\" put /dev/stdin \"$1\"")
        #expect(ending == .exited(66) && text.contains("/dev/stdin is a pipe"), "\(text)")
        let (other, words) = try run("printf x | \"$0\" put - \"$1\"")
        #expect(other == .exited(64) && words.contains("standard input cannot be read again"), "\(words)")
        #expect(server.requests.isEmpty)
        #expect(try run("\"$0\" put /dev/stdin \"$1\" < \"$2\"").0 == .exited(0))
        #expect(server.requests.first?.content == [1, 2, 3])
    }

    @Test("An empty file is sent")
    func empty() throws {
        let server = try server()
        let home = try CommandHome()
        try home.run("put", try home.file([]), server.url + "/x").expect(0)
        #expect(server.requests.first?.isComplete == true && server.requests.first?.contentCount == 0)
    }
}
