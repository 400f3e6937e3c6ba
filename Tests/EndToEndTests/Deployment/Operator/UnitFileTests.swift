import FoundationEssentials
import Glibc
import TestSupport
import Testing

private let analyze = "/usr/bin/systemd-analyze"
private let isInstalled = ConditionTrait.enabled(
    if: access(analyze, X_OK) == 0, "systemd-analyze is missing; scripts/system-packages test installs it")

/// The units under docker/systemd, checked by systemd-analyze(1).
@Suite("systemd units", .blocking)
struct UnitFileTests {
    private static var directory: String {
        let root = #filePath.split(separator: "/").dropLast(5).joined(separator: "/")
        return "/\(root)/docker/systemd"
    }

    private func text(_ name: String) throws -> String {
        String(
            decoding: try #require(FileManager.default.contents(atPath: Self.directory + "/" + name), "\(name)"),
            as: UTF8.self)
    }

    @Test(
        "systemd-analyze verify reports no problem, even with each drop-in", isInstalled,
        arguments: [nil, "handover.conf", "scale.conf"])
    func verify(dropIn: String?) throws {
        let copies = try TemporaryDirectory()
        if let dropIn {
            let directory = copies.path + "/onward.service.d"
            try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
            try Data(try text(dropIn).utf8).write(to: URL(filePath: directory + "/" + dropIn))
        }
        // The program that the unit starts must exist.
        let service = try text("onward.service").replacing("/usr/bin/onward", with: try ExecutableLocation.onward())
        try Data(service.utf8).write(to: URL(filePath: copies.path + "/onward.service"))
        try Data(try text("onward.socket").utf8).write(to: URL(filePath: copies.path + "/onward.socket"))
        let run = try ChildProcess(
            analyze,
            ["verify", "--man=no", copies.path + "/onward.service", copies.path + "/onward.socket"])
        #expect(try run.awaitEnding(within: .seconds(120)) == .exited(0), "\(run.errorOutput)")
        // systemd-analyze reports unknown words as warnings. Warnings about units of the system are ignored.
        let ours = run.errorOutput.split(separator: "\n").filter { $0.contains("onward") }
        #expect(ours.isEmpty, "\(ours)")
    }

    @Test("systemd-analyze security reports a low exposure", isInstalled)
    func security() throws {
        let run = try ChildProcess(
            "/bin/sh",
            [
                "-c", "exec \"$0\" \"$@\" 1>&2", analyze, "security", "--offline=true", "--no-pager",
                "--threshold=14", Self.directory + "/onward.service",
            ])
        #expect(try run.awaitEnding(within: .seconds(120)) == .exited(0), "\(run.errorOutput)")
    }

    @Test("Every variable in onward.default is an option, and a server with the suggested values starts")
    func defaults() throws {
        let lines = try text("onward.default").split(separator: "\n").map(String.init)
        let assignments = lines.compactMap { line -> (String, String)? in
            guard let range = line.firstRange(of: "ONWARD_"), line[..<range.lowerBound].allSatisfy({ $0 == "#" }),
                let equals = line.firstIndex(of: "=")
            else { return nil }
            return (String(line[range.lowerBound..<equals]), String(line[line.index(after: equals)...]))
        }
        #expect(assignments.count >= 8)
        #expect(lines.allSatisfy { $0.isEmpty || $0.hasPrefix("#") })
        let directory = try TemporaryDirectory()
        var variables = Dictionary(uniqueKeysWithValues: assignments)
        // These variables name files of a real system.
        for name in ["ONWARD_TOKEN_FILE", "ONWARD_TLS_CERT", "ONWARD_TLS_KEY"] {
            #expect(variables.removeValue(forKey: name) != nil)
        }
        variables["ONWARD_PUBLIC_READ"] = nil
        let process = try ServerProcess.run(
            ["--root", directory.path + "/data", "--listen", "127.0.0.1:0"], environment: variables)
        let log = try process.awaitErrorOutput(containing: "listening on")
        #expect(!log.contains("there is no option for"))
    }
}
