import FoundationEssentials
import Glibc
import Testing

/// The commands in documents, run as they are written, with a server that has just started in an empty directory.
///
/// Blocks ```` ```sh ```` of a document are one script, in a directory of its own. A block ```` ```text ```` behind one is
/// its output. The server is at `$URL` and `http://127.0.0.1:8080`, its data in `$ROOT`.
@Suite("Documents", .timeLimit(.minutes(15)), .blocking)
struct DocumentTests {
    private static let repository = OperatorFiles.directory + "/.."

    private struct Block {
        let commands: String
        var output: String?
    }

    private func blocks(in document: String) throws -> [Block] {
        let path = Self.repository + "/" + document
        let text = String(decoding: try #require(FileManager.default.contents(atPath: path)), as: UTF8.self)
        var blocks: [Block] = []
        var open: (kind: String, lines: [Substring])?
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            guard line.hasPrefix("```") else {
                open?.lines.append(line)
                continue
            }
            guard let (kind, lines) = open else {
                open = (String(line.dropFirst(3)), [])
                continue
            }
            let content = lines.map { $0 + "\n" }.joined()
            if kind == "sh" { blocks.append(Block(commands: content)) }
            if kind == "text", !blocks.isEmpty { blocks[blocks.count - 1].output = content }
            open = nil
        }
        return blocks
    }

    @Test(
        "Every command works, and writes what is printed behind it",
        .enabled(if: Tool.curl.isInstalled && Tool.sqlite3.isInstalled, "curl or sqlite3 is not installed"),
        arguments: [
            ("README.md", 1), ("docs/command-line.md", 4), ("docs/files.md", 6), ("docs/operating.md", 4),
            ("docs/protocol.md", 2),
        ])
    func commands(document: String, count: Int) throws {
        let blocks = try blocks(in: document)
        #expect(blocks.count >= count)
        try withServer { server in
            let directory = try TemporaryDirectory()
            let work = directory.path + "/work"
            try FileManager.default.createDirectory(atPath: work + "/photos", withIntermediateDirectories: true)
            for name in ["a", "b"] {
                _ = FileManager.default.createFile(atPath: work + "/photos/" + name, contents: Data(name.utf8))
            }
            try FileManager.default.createSymbolicLink(
                atPath: work + "/scripts", withDestinationPath: Self.repository + "/scripts")
            let programs = String(try ExecutableLocation.onward().dropLast("/onward".count))
            var script = "set -euo pipefail; cd '\(work)'\n"
            for (index, block) in blocks.enumerated() {
                script += "exec >'\(directory.path)/output-\(index)'\n"
                script += block.commands.replacing("http://127.0.0.1:8080", with: "http://\(server.authority)")
            }
            let run = try ChildProcess(
                "/bin/bash", ["-c", script],
                environment: [
                    "PATH": programs + ":/usr/bin:/bin", "HOME": directory.path, "no_proxy": "127.0.0.1",
                    "URL": "http://\(server.authority)", "ROOT": server.root,
                    "COPY": directory.path + "/copy", "ONWARD_LISTEN": server.authority,
                ])
            #expect(try run.awaitEnding() == .exited(0), "\(run.errorOutput)")
            for (index, block) in blocks.enumerated() {
                guard let expected = block.output else { continue }
                let written = FileManager.default.contents(atPath: directory.path + "/output-\(index)") ?? Data()
                let lines = String(decoding: written, as: UTF8.self).replacing("\r\n", with: "\n")
                #expect(lines.trimmingEnd == expected.trimmingEnd, "\(block.commands)")
            }
        }
    }
}

extension String {
    fileprivate var trimmingEnd: Substring {
        var text = self[...]
        while text.last == "\n" { text.removeLast() }
        return text
    }
}
