import FoundationEssentials
import Glibc
import Testing

/// `scripts/install`, which `make install` and the Debian package call.
@Suite(
    "Installation", .timeLimit(.minutes(15)), .blocking,
    .enabled(if: access("/usr/bin/strip", X_OK) == 0, "strip is not installed here"))
struct InstallTests {
    /// The paths of all files below a directory.
    private func files(below path: String) -> [String] {
        ((try? FileManager.default.subpathsOfDirectory(atPath: path)) ?? []).filter {
            var isDirectory = false
            _ = FileManager.default.fileExists(atPath: path + "/" + $0, isDirectory: &isDirectory)
            return !isDirectory
        }
    }

    @Test("brings what operators read and use, and takes all of it away again")
    func documents() throws {
        let directory = try TemporaryDirectory()
        try FileManager.default.createDirectory(
            atPath: directory.path + "/build", withIntermediateDirectories: true)
        // Any program does: its pages are not what is looked at.
        try FileManager.default.copyItem(atPath: "/usr/bin/true", toPath: directory.path + "/build/onward")
        let script = String(OperatorFiles.directory.dropLast("docker".count)) + "scripts/install"
        func run(_ words: String...) throws {
            let process = try ChildProcess(
                "/bin/bash", [script] + words,
                environment: [
                    "PATH": "/usr/bin:/bin", "PREFIX": "/opt/onward", "DESTDIR": directory.path + "/root",
                ])
            #expect(try process.awaitEnding() == .exited(0), "\(process.errorOutput)")
        }
        try run(directory.path + "/build", "onward")
        let root = directory.path + "/root/opt/onward"
        let installed = files(below: root)
        let documents = [
            "README.md", "CHANGELOG.md", "docs/threat-model.md", "docs/protocol.md", "docs/operating.md",
            "examples/alerts.yml", "examples/onward.default",
            "examples/proxies/Caddyfile", "examples/proxies/apache.conf", "examples/proxies/haproxy.cfg",
            "examples/proxies/nghttpx.conf", "examples/proxies/nginx.conf",
        ]
        for document in documents { #expect(installed.contains("share/doc/onward/" + document), "\(document)") }
        #expect(installed.contains("bin/onward"))
        let alerts = FileManager.default.contents(atPath: root + "/share/doc/onward/examples/alerts.yml")
        #expect(alerts == FileManager.default.contents(atPath: OperatorFiles.directory + "/alerts.yml"))
        try run("--remove", "onward")
        #expect(files(below: root) == [])
        #expect(!FileManager.default.fileExists(atPath: root + "/share/doc/onward"))
    }
}
