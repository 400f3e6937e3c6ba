import FoundationEssentials
import Glibc
import TestSupport
import Testing

/// `scripts/install`, which `make install` and the Debian package call.
@Suite(
    "Installation", .blocking,
    .enabled(if: access("/usr/bin/strip", X_OK) == 0, "strip is not installed here"))
struct InstallTests {
    /// The paths of all files below a directory, relative to it.
    private func files(below path: String) -> [String] {
        ((try? FileManager.default.subpathsOfDirectory(atPath: path)) ?? []).filter {
            var isDirectory = false
            _ = FileManager.default.fileExists(atPath: path + "/" + $0, isDirectory: &isDirectory)
            return !isDirectory
        }
    }

    private let programs = ["onward", "onward-conformance"]
    /// The path of the source directory, with a slash at the end.
    private let source = String(OperatorFiles.directory.dropLast("docker".count))

    /// Expects that the relative links of a Markdown document lead to existing files.
    private func expectLinksLeadSomewhere(_ path: String) throws {
        let text = try String(contentsOfFile: path, encoding: .utf8)
        for piece in text.split(separator: "](").dropFirst() {
            let target = piece.prefix { $0 != ")" && $0 != "#" }
            if target.isEmpty || target.contains(":") { continue }
            let place = path.prefix(through: path.lastIndex(of: "/") ?? path.startIndex) + target
            #expect(FileManager.default.fileExists(atPath: String(place)), "\(path): \(target)")
        }
    }

    @Test("scripts/install installs programs, documents and examples, and removes all of them again")
    func documents() throws {
        let directory = try TemporaryDirectory()
        try FileManager.default.createDirectory(
            atPath: directory.path + "/build", withIntermediateDirectories: true)
        // The content of the programs does not matter: only the other files are tested.
        for program in programs {
            try FileManager.default.copyItem(atPath: "/usr/bin/true", toPath: directory.path + "/build/" + program)
        }
        let script = source + "scripts/install"
        func run(_ words: [String]) throws {
            let process = try ChildProcess(
                "/bin/bash", [script] + words,
                environment: [
                    "PATH": "/usr/bin:/bin", "PREFIX": "/opt/onward", "DESTDIR": directory.path + "/root",
                ])
            #expect(try process.awaitEnding() == .exited(0), "\(process.errorOutput)")
        }
        try run([directory.path + "/build"] + programs)
        let root = directory.path + "/root/opt/onward"
        let installed = files(below: root)
        // The list includes files that are added to docs/ later.
        let documents = files(below: source + "docs")
        #expect(documents.contains("command-line.md"))
        let examples = ["alerts.yml", "onward.default"].map { "examples/" + $0 }
        let proxies = files(below: source + "docker/proxies").map { "examples/proxies/" + $0 }
        #expect(!proxies.isEmpty)
        for document in ["README.md", "CHANGELOG.md"] + documents + examples + proxies {
            #expect(installed.contains("share/doc/onward/" + document), "\(document)")
        }
        #expect(installed.contains("share/doc/onward-conformance/README.md"))
        for document in installed where document.hasSuffix(".md") {
            try expectLinksLeadSomewhere(root + "/" + document)
        }
        #expect(installed.contains("bin/onward"))
        let alerts = FileManager.default.contents(atPath: root + "/share/doc/onward/examples/alerts.yml")
        #expect(alerts == FileManager.default.contents(atPath: OperatorFiles.directory + "/alerts.yml"))
        try run(["--remove"] + programs)
        #expect(files(below: root) == [])
        for program in programs {
            #expect(!FileManager.default.fileExists(atPath: root + "/share/doc/" + program))
        }
    }
}
