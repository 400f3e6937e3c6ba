import FoundationEssentials
import Glibc
import TestSupport
import Testing

/// The commands in documents are run as written, with a server that has just started in an empty directory.
///
/// The blocks ```` ```sh ```` of a document form one script, run in a directory of its own. A block ```` ```text ````
/// after a block ```` ```sh ```` is the expected output of that block. The server's URL is `$URL` and
/// `http://127.0.0.1:8080`, its data directory `$ROOT`.
@Suite("Documents", .blocking)
struct DocumentTests {
    private static let repository = OperatorFiles.directory + "/.."

    private struct Command {
        let text: String
        var output: String?
    }

    private func commands(in document: String) throws -> [Command] {
        var commands: [Command] = []
        for block in try DocumentBlock.all(in: document) {
            if block.language == "sh" { commands.append(Command(text: block.content)) }
            if block.language == "text", !commands.isEmpty { commands[commands.count - 1].output = block.content }
        }
        return commands
    }

    @Test(
        "Every command works, and prints the output that follows it",
        .enabled(if: Tool.curl.isInstalled && Tool.sqlite3.isInstalled, "curl or sqlite3 is not installed"),
        arguments: [
            ("README.md", 1), ("docs/command-line.md", 5), ("docs/files.md", 8), ("docs/operating.md", 4),
            ("docs/protocol.md", 2),
        ])
    func run(document: String, count: Int) throws {
        let commands = try commands(in: document)
        #expect(commands.count >= count)
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
            for (index, command) in commands.enumerated() {
                script += "exec >'\(directory.path)/output-\(index)'\n"
                script += command.text.replacing("http://127.0.0.1:8080", with: "http://\(server.authority)")
            }
            let run = try ChildProcess(
                "/bin/bash", ["-c", script],
                environment: [
                    "PATH": programs + ":/usr/bin:/bin", "HOME": directory.path, "no_proxy": "127.0.0.1",
                    "URL": "http://\(server.authority)", "ROOT": server.root,
                    "COPY": directory.path + "/copy", "ONWARD_LISTEN": server.authority,
                ])
            #expect(try run.awaitEnding() == .exited(0), "\(run.errorOutput)")
            for (index, command) in commands.enumerated() {
                guard let expected = command.output else { continue }
                let written = FileManager.default.contents(atPath: directory.path + "/output-\(index)") ?? Data()
                let lines = String(decoding: written, as: UTF8.self).replacing("\r\n", with: "\n")
                #expect(lines.trimmingEnd == expected.trimmingEnd, "\(command.text)")
            }
        }
    }

    @Test("docs/protocol.md: the requests of the example get the responses that follow them")
    func protocolExample() throws {
        let messages = try DocumentBlock.all(in: "docs/protocol.md").filter { $0.language == "http" }
            .map(\.content)
        let printedUpload = try self.upload(in: messages.joined())
        var upload: String?
        try withServer { server in
            for (index, message) in messages.enumerated() where !message.hasPrefix("HTTP/1.1 ") {
                let response = try #require(index + 1 < messages.count ? messages[index + 1] : nil)
                var request = message.replacing("127.0.0.1:8080", with: server.authority)
                if let upload { request = request.replacing(printedUpload, with: upload) }
                let (head, content) = split(request)
                let connection = try server.connect()
                try connection.send(head.replacing("\n", with: "\r\n") + "\r\n\r\n" + content)
                let method = String(request.prefix { $0 != " " })
                if response.hasPrefix("HTTP/1.1 1") {
                    _ = try connection.requireInterim()
                    upload = try self.upload(in: String(decoding: connection.received, as: UTF8.self))
                    // The connection is cut here, as in the example.
                    try connection.awaitAcknowledgment()
                    connection.close()
                    try server.awaitInterruption(method)
                } else {
                    _ = try connection.readResponse(to: method)
                }
                let received = String(decoding: connection.received, as: UTF8.self)
                let expected = comparable(response + "\n", upload: printedUpload)
                #expect(comparable(received, upload: upload) == expected, "\(request)")
            }
            #expect(messages.count == 6)
            #expect(server.published("notes.txt") == Array("abcdefghijklmnopqrstuvwxyz".utf8))
        }
    }

    private func upload(in text: String) throws -> String {
        let start = try #require(text.firstRange(of: "/uploads/"))
        return String(text[start.lowerBound...].prefix { !$0.isWhitespace })
    }

    /// The head of a request, and its content without the line feed at the end.
    private func split(_ request: String) -> (head: String, content: String) {
        guard let range = request.firstRange(of: "\n\n") else { return (String(request.trimmingEnd), "") }
        return (String(request[..<range.lowerBound]), String(String(request[range.upperBound...]).trimmingEnd))
    }

    /// A response without the parts that differ from run to run.
    private func comparable(_ response: String, upload: String?) -> String {
        var text = response.replacing("\r\n", with: "\n")
        if let upload { text = text.replacing(upload, with: "/uploads/1") }
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map { line -> String in
            let name = line.prefix { $0 != ":" }
            if ["ETag", "Last-Modified", "Date"].contains(name) { return name + ": …" }
            return line.hasPrefix("Upload-Limit: max-age=") ? "Upload-Limit: max-age=…" : String(line)
        }
        return lines.joined(separator: "\n")
    }
}

extension String {
    fileprivate var trimmingEnd: Substring {
        var text = self[...]
        while text.last == "\n" { text.removeLast() }
        return text
    }
}
