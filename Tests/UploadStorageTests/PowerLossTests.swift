import Foundation
import Testing

/// Runs fewer histories than `make test-power-loss` does: see Tests/PowerLoss.
@Suite(.timeLimit(.minutes(15)))
struct PowerLossTests {
    @Test("OFF-09 OFF-10 OFF-18: no power loss destroys acknowledged state, even if any unsynchronized data is lost")
    func histories() throws {
        let process = Process()
        process.executableURL = try program()
        var environment = ProcessInfo.processInfo.environment
        environment["ONWARD_HISTORIES"] = environment["ONWARD_HISTORIES"] ?? "60"
        process.environment = environment
        let output = Pipe()
        process.standardOutput = output
        process.standardError = output
        try process.run()
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        print(text)
        #expect(process.terminationStatus == 0, "\(text)")
    }

    /// The executable `PowerLoss`, which the build creates in the directory of the tests.
    private func program() throws -> URL {
        let tests = URL(fileURLWithPath: ProcessInfo.processInfo.arguments[0]).deletingLastPathComponent()
        let candidates = [tests, Bundle.main.bundleURL, Bundle.main.bundleURL.deletingLastPathComponent()]
            .map { $0.appendingPathComponent("PowerLoss") }
        return try #require(candidates.first { FileManager.default.isExecutableFile(atPath: $0.path) })
    }
}
