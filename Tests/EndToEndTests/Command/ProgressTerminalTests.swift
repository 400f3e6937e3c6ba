import Glibc
import TestSupport
import Testing

@Suite("Command: progress on a terminal", .blocking)
struct ProgressTerminalTests {
    /// Runs a slow upload on a new terminal, and returns what was written to the terminal.
    /// - Parameters:
    ///   - commands: the commands that a shell runs on the terminal. `$UPLOAD` is the upload command, and `$WRITTEN`
    ///     the path of a file with the output.
    ///   - size: the size of the uploaded file. The upload sends a megabyte per second.
    private func written(_ commands: String, size: Int = 3_000_000) throws -> String {
        var text = ""
        try withServer { server in
            let home = try CommandHome()
            let file = try home.file(Payload.bytes(size), "ein-großer-Name-日本語.bin")
            let upload = "'\(try ExecutableLocation.onward())' put --limit-rate 1M '\(file)' \(server.url("/files/a"))"
            let run = try OnwardRun(
                shell: "script -qefc \"$COMMANDS\" \"$WRITTEN\" 1>&2", [],
                environment: [
                    "COMMANDS": commands.replacing("$UPLOAD", with: upload), "HOME": home.path, "TERM": "xterm",
                    "XDG_STATE_HOME": home.path + "/state", "SHELL": "/bin/sh", "LC_ALL": "C.UTF-8",
                    "WRITTEN": home.path + "/written",
                ])
            #expect(run.ending == .exited(0), "\(run.output)")
            text = run.output
        }
        return text
    }

    /// The successive texts of the progress line.
    private func lines(_ text: String) -> [String] {
        text.replacing("\u{1B}[1A", with: "").split(separator: "\r\u{1B}[J").flatMap { $0.split(separator: "\r\n") }
            .map(String.init).filter { $0.contains(" %") }
    }

    @Test(
        "The progress is one line with share, bytes, rate and time left, within the width of the terminal",
        arguments: [40, 80, 200])
    func columns(columns: Int) throws {
        let text = try written("stty cols \(columns); $UPLOAD")
        let lines = lines(text)
        #expect(lines.count > 5)
        #expect(lines.allSatisfy { $0.count < columns })
        #expect(text.contains("Sent ein-großer-Name-日本語.bin: http://"))
        guard columns >= 80 else { return }
        #expect(lines.contains { $0.contains("MB of 3.00 MB") && $0.contains("B/s") && $0.hasSuffix(" left") })
        #expect(lines.contains { $0.contains("[#") } == (columns == 200))
    }

    @Test("After the window becomes narrower, the next line is narrower, too")
    func resized() throws {
        let text = try written(
            "stty cols 120; $UPLOAD & until grep -q ' left' \"$WRITTEN\"; do sleep 0.1; done; stty cols 60; wait $!",
            size: 6_000_000)
        let counts = lines(text).map(\.count)
        let change = try #require(counts.firstIndex { $0 < 60 })
        #expect(counts[..<change].contains { $0 > 80 })
        #expect(counts[change...].allSatisfy { $0 < 60 })
        // The command erases the wrapped line, beginning with its first row.
        #expect(text.contains("\u{1B}[1A\u{1B}[J"))
    }
}
