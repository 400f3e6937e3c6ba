import FoundationEssentials
import Glibc
import Testing

/// The commands in documents, run as they are written. A block ```sh is run; a block ```text behind it is its output.
@Suite("Documents", .timeLimit(.minutes(15)), .blocking)
struct DocumentTests {
    private struct Command {
        let text: String
        var output: String?
    }

    private func commands(in document: String) throws -> [Command] {
        let path = OperatorFiles.directory + "/../docs/" + document
        let text = String(decoding: try #require(FileManager.default.contents(atPath: path)), as: UTF8.self)
        var commands: [Command] = []
        var block: (kind: String, lines: [Substring])?
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            guard line.hasPrefix("```") else {
                block?.lines.append(line)
                continue
            }
            guard let (kind, lines) = block else {
                block = (String(line.dropFirst(3)), [])
                continue
            }
            let content = lines.map { $0 + "\n" }.joined()
            if kind == "sh" { commands.append(Command(text: content)) }
            if kind == "text", !commands.isEmpty { commands[commands.count - 1].output = content }
            block = nil
        }
        return commands
    }

    @Test(
        "docs/files.md: every command works, and writes what is printed behind it",
        .enabled(if: Tool.curl.isInstalled, "curl is not installed"))
    func files() throws {
        let commands = try commands(in: "files.md")
        #expect(commands.count { $0.output != nil } >= 5)
        try withServer { server in
            let output = server.directory.path + "/output"
            for command in commands {
                let text = command.text.replacing("http://127.0.0.1:8080", with: "http://\(server.authority)")
                let run = try ChildProcess(
                    "/bin/bash", ["-c", "set -euo pipefail; exec >\(output)\n" + text],
                    environment: ["PATH": "/usr/bin:/bin", "no_proxy": "*"])
                #expect(try run.awaitEnding() == .exited(0), "\(command.text)\(run.errorOutput)")
                guard let expected = command.output else { continue }
                let written = FileManager.default.contents(atPath: output) ?? Data()
                let lines = String(decoding: written, as: UTF8.self).replacing("\r\n", with: "\n")
                #expect(lines.trimmingEnd == expected.trimmingEnd, "\(command.text)")
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
