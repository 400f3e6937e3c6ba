import Foundation
import TestSupport
import Testing

/// The Swift code in the documents of the server library. The blocks of a document together are one program, and a block
/// that imports Testing is a file of its own.
@Suite("Code in documents", .blocking)
struct DocumentCodeTests {
    private static let repository = OperatorFiles.directory + "/.."
    /// The first compiler in PATH, which is also the one that a shell finds.
    private static let compiler = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
        .map { "\($0)/swiftc" }.first { FileManager.default.isExecutableFile(atPath: $0) }

    @Test(
        "The code compiles", .enabled(if: compiler != nil, "swiftc is not in PATH"),
        arguments: [
            ("docs/embedding.md", 4), ("Sources/TransferServer/TransferServer.docc/TransferServer.md", 1),
            ("Sources/TransferServer/TransferServer.docc/HandlerAndAuthorization.md", 6),
        ])
    func compile(document: String, count: Int) throws {
        let blocks = try blocks(in: document)
        #expect(blocks.count == count)
        try typecheck(blocks)
    }

    @Test("The server of the README compiles, in at most 15 lines", .enabled(if: compiler != nil, "no swiftc in PATH"))
    func readme() throws {
        let blocks = try blocks(in: "README.md").filter { $0.contains("import TransferServer") }
        #expect(blocks.count == 1)
        #expect(blocks.joined().split(separator: "\n", omittingEmptySubsequences: false).count <= 15 + 1)
        try typecheck(blocks)
    }

    private func blocks(in document: String) throws -> [String] {
        let text = try String(contentsOfFile: Self.repository + "/" + document, encoding: .utf8)
        var blocks: [String] = []
        var open: [Substring]?
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            if let lines = open {
                if line == "```" {
                    // A manifest is not part of the program.
                    if lines.first?.hasPrefix("// swift-tools-version") != true {
                        blocks.append(lines.joined(separator: "\n") + "\n")
                    }
                    open = nil
                } else {
                    open = lines + [line]
                }
            } else if line == "```swift" || line == "```swift server" {
                open = []
            }
        }
        return blocks
    }

    private func typecheck(_ blocks: [String]) throws {
        let directory = try TemporaryDirectory()
        let built = String(try ExecutableLocation.onward().dropLast("/onward".count))
        var arguments = [
            "-typecheck", "-swift-version", "6", "-warnings-as-errors", "-module-name", "document",
            "-I", "\(built)/Modules", "-Xcc", "-fmodule-map-file=\(built)/CReceiveFilter.build/module.modulemap",
        ]
        let sources = Self.repository + "/Sources"
        for name in try FileManager.default.contentsOfDirectory(atPath: sources) where name.hasPrefix("C") {
            arguments += ["-I", "\(sources)/\(name)"]
        }
        var program = ""
        for (number, block) in blocks.enumerated() {
            if block.contains("import Testing") {
                // In a package this file is in the test target.
                let text = "import TransferServer\n" + block
                arguments.append(try directory.file("tests-\(number).swift", Array(text.utf8)))
            } else {
                program += block
            }
        }
        arguments.append(try directory.file("main.swift", Array(program.utf8)))
        let run = try ChildProcess(
            try #require(Self.compiler), arguments,
            environment: ProcessInfo.processInfo.environment.filter { ["PATH", "HOME", "TMPDIR"].contains($0.key) })
        #expect(try run.awaitEnding(within: .seconds(300)) == .exited(0), "\(run.errorOutput)")
    }
}
