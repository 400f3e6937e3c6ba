import Glibc
import SystemCalls
import TestSupport
import Testing

/// Runs the test programs in `Tests/Browser` with Node.
enum NodeTests {
    static var root: String { "/" + #filePath.split(separator: "/").dropLast(5).joined(separator: "/") }

    /// Runs a test program, and records an issue with the failed tests.
    static func run(
        _ name: String, variables: [(name: String, value: String)] = [], timeout: Duration,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let places = ["/usr/bin/node", "/usr/local/bin/node"]
        let node = try #require(places.first { access($0, X_OK) == 0 }, "scripts/system-packages test installs Node")
        // The test program is ended, too, if this process is killed; then its browsers end.
        var run = ProgramRun(
            "/usr/bin/setpriv", arguments: ["--pdeathsig", "KILL", "--", node, "\(root)/Tests/Browser/\(name)"],
            variables: [
                ("ONWARD_PROGRAM", try ExecutableLocation.onward()), ("ONWARD_SEED", "\(SeededGenerator.runSeed)"),
            ] + variables,
            timeout: timeout)
        run.maxOutput = 4 << 20
        let result = run.run()
        #expect(
            result.outcome == .ended(.exited(0)), "\(result.summary)\n\(failures(result.output))",
            sourceLocation: sourceLocation)
    }

    /// The parts of the output that describe failed tests.
    private static func failures(_ output: [UInt8]) -> String {
        var isShown = false
        let lines = String(decoding: output, as: UTF8.self).split(separator: "\n").filter { line in
            let text = line.drop { $0 == " " }
            if text.hasPrefix("ok ") { isShown = false }
            if text.hasPrefix("not ok ") || line.hasPrefix("# seed") { isShown = true }
            return isShown
        }
        return lines.suffix(120).joined(separator: "\n")
    }
}
