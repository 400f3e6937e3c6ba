import ConformanceKit
import FoundationEssentials
import TestSupport
import Testing

@Suite(
    "Local files of a server with a shared storage", .blocking,
    .enabled(if: Cluster.isPossible, "\(Cluster.requirement)"),
    .enabled(if: SystemCallTrace.isPossible, "needs strace, and the right to trace"))
struct ClusterLocalFileTests {
    /// The system calls with which a server changed files while it received, served and removed files.
    private func changingCalls(storage: [String]?, environment: [String: String] = [:]) throws -> [Substring] {
        let directory = try TemporaryDirectory()
        let log = directory.path + "/calls"
        let calls =
            "open,openat,openat2,creat,mkdir,mkdirat,mknod,mknodat,link,linkat,symlink,symlinkat,rename,renameat,renameat2,"
            + "unlink,unlinkat,rmdir,truncate"
        let server = try ServerProcess(
            environment: environment,
            startedBy: ["/usr/bin/strace", "-D", "-f", "--seccomp-bpf", "-q", "-e", "trace=" + calls, "-o", log],
            storage: storage)
        try server.awaitReadiness()
        let content = BytePool.repeated(0..<12_000_000)
        let location = try server.begin(.v8, "/files/d/large", Array(content[..<9_000_000]), length: content.count)
        let offset = Int(try #require(try server.retrieve(location).offset))
        let last = try server.exchange(
            .append(.v8, location, at: offset, complete: true, .bytes(Array(content[offset...]))))
        #expect(last.status == 201)
        for count in [0, 5, 500_000] {
            let body = Array(content[..<count])
            #expect(try server.exchange(Request("PUT", "/files/\(count)", [], .bytes(body))).status == 201)
        }
        #expect(try server.exchange(.get("/files/d/large")).content == content)
        #expect(try server.exchange(.get("/files/")).status == 200)
        #expect(try server.exchange(Request("DELETE", "/files/5")).status == 204)
        #expect(try server.stop() == .exited(0))
        // The last line of the log reports the end of the server.
        let text: String? = pollUntil(within: .seconds(30)) {
            let text = textOfFile(log)
            return text.contains("exited with 0") ? text : nil
        }
        return try #require(text).split(separator: "\n").filter { line in
            if line.contains(" = -1 ") || line.contains("+++") || line.contains("resumed>") { return false }
            // strace does not know the call of a thread that the end of the process has ended.
            if line.contains(" ???(") { return false }
            let isOpening = line.contains(" open")
            let isReading = !["O_CREAT", "O_WRONLY", "O_RDWR", "O_TMPFILE"].contains { line.contains($0) }
            let isDevice = line.contains("\"/dev/") || line.contains("\"/proc/")
            return !(isOpening && (isReading || isDevice))
        }
    }

    @Test("a server with a shared storage creates, changes and removes no file")
    func none() throws {
        let shared = try SharedStorage()
        let changes = try changingCalls(storage: shared.options, environment: shared.environment)
        #expect(changes.isEmpty, "\(changes.joined(separator: "\n"))")
        // With a data directory the trace shows the files.
        let directory = try TemporaryDirectory()
        let local = try changingCalls(storage: ["--root", directory.path + "/data"])
        #expect(local.contains { $0.contains("O_CREAT") })
    }
}
