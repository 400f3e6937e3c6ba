import CommandLineInterface
import FoundationEssentials
import SystemCalls
import TestSupport
import Testing

/// Runs the completion script in bash. `make test-manual` tests the other shells, which are not on every machine.
@Suite("Completions", .timeLimit(.minutes(15)))
struct CompletionTests {
    @Test(
        "bash completes commands, options, their values and operands",
        arguments: [
            (["sam-ple", ""], ["go", "help", "manual", "stop", "take", "version"]), (["sam-ple", "ta"], ["take"]),
            (["sam-ple", "take", "--f"], ["--file", "--flag", "--free"]),
            (["sam-ple", "take", "--color", "gr"], ["gray", "green"]),
            (["sam-ple", "take", "--color", "=", "gr"], ["gray", "green"]),
            (["sam-ple", "take", "--color", "="], ["gray", "green", "red"]),
            (["sam-ple", "take", "--free", ""], []),
            (["sam-ple", "take", "-f", ""], ["one file", "subdirectory"]),
            (["sam-ple", "take", "--dir", ""], ["subdirectory"]), (["sam-ple", "take", "o"], ["one file"]),
            (["sam-ple", "take", "-"], ["--color", "--dir", "--file", "--flag", "--free", "--help"]),
            // File names that other users chose are never executed.
            (["sam-ple", "go", ""], [#"\$\(touch\ evil\)"#, "plain"]), (["sam-ple", "go", "p"], ["plain"]),
            (["sam-ple", "stop", ""], []), (["sam-ple", "stop", "--"], ["--help"]),
            (["sam-ple", "nothing", ""], []),
        ])
    func bash(words: [String], expected: [String]) async throws {
        let place = try TemporaryDirectory()
        let directory = place.path
        try FileManager.default.createDirectory(
            atPath: directory + "/work/subdirectory", withIntermediateDirectories: true)
        try Data().write(to: URL(filePath: directory + "/work/one file"))
        let quote = { (word: String) in "'" + word.replacing("'", with: "'\\''") + "'" }
        let script = """
            set -u
            cd \(directory)/work
            NAMES='plain
            $(touch evil)'
            \(BashCompletion(Sample.program).text)
            COMP_WORDS=(\(words.map(quote).joined(separator: " ")))
            COMP_CWORD=\(words.count - 1)
            _sam_ple
            [ ! -e evil ] || echo executed
            printf '%s\\n' "${COMPREPLY[@]}"
            """
        try Data(script.utf8).write(to: URL(filePath: directory + "/script"))
        let output = directory + "/output"
        let process = try ProcessGroup(shell: "exec bash \(directory)/script", output: output)
        while process.currentEnding == nil { try await Task.sleep(for: .milliseconds(5)) }
        #expect(process.currentEnding == .exited(0))
        let text = String(decoding: try Data(contentsOf: URL(filePath: output)), as: UTF8.self)
        #expect(text.split(separator: "\n").map(String.init).sorted() == expected)
    }
}
