import Foundation
import Testing

@Suite("docs/command-line.md", .blocking, .timeLimit(.minutes(15)))
struct CommandLineDocumentTests {
    @Test("Its commands work, in their order")
    func commands() throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../..")
        let text = try String(contentsOf: root.appending(path: "docs/command-line.md"), encoding: .utf8)
        let blocks = text.components(separatedBy: "```sh\n").dropFirst().compactMap {
            $0.components(separatedBy: "```").first
        }
        #expect(blocks.count == 3)
        try withServer { server in
            let home = try CommandHome()
            try FileManager.default.createDirectory(atPath: home.path + "/photos", withIntermediateDirectories: false)
            for name in ["a", "b"] { _ = try home.file(Payload.bytes(1000), "photos/" + name) }
            let onward = try ExecutableLocation.onward()
            let script = "set -e; cd '\(home.path)'; onward() { '\(onward)' \"$@\"; }\n" + blocks.joined()
            let shell = try ChildProcess(
                "/bin/sh", ["-c", script], environment: ["HOME": home.path, "URL": server.url("")])
            #expect(try shell.awaitEnding() == .exited(0), "\(shell.errorOutput)")
            #expect(server.publishedNames().sorted() == ["a", "b", "photos.tar"])
            expectSame(
                Array(FileManager.default.contents(atPath: home.path + "/copy.tar") ?? Data()),
                server.published("photos.tar") ?? [])
        }
    }
}
