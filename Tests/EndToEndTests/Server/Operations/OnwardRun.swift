import Glibc
import TestSupport
import Testing

/// A run of `onward` that ends by itself, with its output.
struct OnwardRun {
    let ending: ChildProcess.Ending
    /// Standard output and standard error, together.
    let output: String

    /// Runs `onward` with these arguments.
    init(_ arguments: [String], environment: [String: String] = [:]) throws {
        try self.init(shell: "exec \"$0\" \"$@\" 1>&2", arguments, environment: environment)
    }

    /// - Parameter script: runs in a shell in which `$0` is the executable.
    init(shell script: String, _ arguments: [String], environment: [String: String] = [:]) throws {
        let process = try ChildProcess(
            "/bin/sh", ["-c", script, try ExecutableLocation.onward()] + arguments, environment: environment)
        ending = try process.awaitEnding()
        output = process.errorOutput
    }

    /// Records an issue unless the run ended with `status` and a short message that contains all of `words`.
    func expect(_ status: Int32, _ words: String..., sourceLocation: SourceLocation = #_sourceLocation) {
        #expect(ending == .exited(status), "\(output)", sourceLocation: sourceLocation)
        for word in words { #expect(output.contains(word), "\(word)", sourceLocation: sourceLocation) }
        #expect(output.hasPrefix("onward"), "\(output)", sourceLocation: sourceLocation)
        #expect(output.split(separator: "\n").count <= 4, "\(output)", sourceLocation: sourceLocation)
        for noise in ["Fatal error", "Error(", "rawValue", ".swift"] {
            #expect(!output.contains(noise), "\(output)", sourceLocation: sourceLocation)
        }
    }
}
