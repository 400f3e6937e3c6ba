import ConformanceKit
import Foundation
import Glibc
import HTTPSemantics
import SystemCalls
import TestSupport
import Testing

/// Runs the recipes of the articles, and kills them at every point of their run.
@Suite("Client: recipes that are killed", .blocking(limit: .seconds(30 * 60)))
struct RecipeTests {
    /// Expects one complete file at its destination and nothing left of the transfer, and removes the server's file.
    private func check(
        _ workspace: RecipeWorkspace, _ server: ServerProcess, _ source: String, leftFiles: Int = 0
    ) throws {
        if workspace.kind == "upload" {
            let names = server.publishedNames()
            #expect(names.count == 1, "\(source): \(names)")
            for name in names {
                expectSame(server.published(name) ?? [], RecipeWorkspace.bytes, "\(source)")
                #expect(try server.exchange(Request("DELETE", "/files/" + name)).status == 204)
            }
        }
        if workspace.kind == "download" {
            expectSame(
                [UInt8](FileManager.default.contents(atPath: workspace.file) ?? Data()), RecipeWorkspace.bytes,
                "\(source)")
            let names = try FileManager.default.contentsOfDirectory(atPath: workspace.directory.path)
            #expect(!names.contains { $0.hasSuffix(".part") }, "\(source): \(names)")
        }
        let stored = workspace.names("storage")
        #expect(stored.count <= leftFiles && !workspace.hasSaved, "\(source): \(stored)")
    }

    private func withWorkspaces(_ kind: String, _ body: (ServerProcess, _ url: String) throws -> Void) throws {
        try withServer { server in
            if kind == "download" {
                _ = try server.publish(RecipeWorkspace.bytes, as: "f.bin")
            }
            try body(server, server.url(kind == "upload" ? "/files/" : "/files/f.bin"))
        }
    }

    @Test(
        "a transfer whose first run is killed at any point completes in the next run, and saved data is never refused",
        arguments: ["upload", "download"])
    func firstRun(kind: String) throws {
        try withWorkspaces(kind) { server, url in
            for point in 1...60 {
                let workspace = try RecipeWorkspace(kind, url)
                let (ending, _) = try workspace.run(killAt: point)
                if ending == .exited(0) {
                    #expect(point > 5)
                    return
                }
                #expect(ending == .signaled(SIGKILL), "\(kind), point \(point)")
                let hasSaved = workspace.hasSaved
                let (second, code) = try workspace.run()
                #expect(second == .exited(0), "\(kind), point \(point): \(code)")
                // A kill between the lock and the first save leaves the lock file.
                try check(workspace, server, "\(kind), point \(point)", leftFiles: hasSaved ? 0 : 1)
            }
        }
    }

    @Test(
        "a transfer that is killed at any point while it resumes completes in a later run",
        arguments: ["upload", "download"])
    func resumedRun(kind: String) throws {
        try withWorkspaces(kind) { server, url in
            for point in 1...60 {
                let workspace = try RecipeWorkspace(kind, url)
                let (paused, reason) = try workspace.run(isPaused: true)
                #expect(paused == .exited(75), "\(reason)")
                guard workspace.hasSaved else { continue }
                let (ending, code) = try workspace.run(killAt: point)
                if ending == .exited(0) {
                    #expect(point > 5)
                    return
                }
                #expect(ending == .signaled(SIGKILL), "\(kind), point \(point): \(code)")
                // Run the recipe once more and kill it at the same point: the resumed data differs this time.
                _ = try workspace.run(killAt: point)
                // The number of points differs between runs: the second run can end before it is killed.
                if workspace.hasSaved {
                    let (last, error) = try workspace.run()
                    #expect(last == .exited(0), "\(kind), point \(point): \(error)")
                }
                try check(workspace, server, "\(kind), point \(point)")
            }
        }
    }

    @Test("a checkpoint can be resumed by one process at a time", arguments: ["upload", "download"])
    func secondProcess(kind: String) throws {
        try withWorkspaces(kind) { server, url in
            let proxy = try HoldingProxy(
                upstream: server.port, limit: 300_000, direction: kind == "upload" ? .toServer : .toClient)
            let workspace = try RecipeWorkspace(kind, url.replacing(":\(server.port)/", with: ":\(proxy.port)/"))
            func refuse() throws {
                let (ending, code) = try workspace.run()
                #expect(ending == .exited(1) && code == "resume-data-used\n", "\(kind): \(ending) \(code)")
            }
            let first = try workspace.start()
            #expect(eventually { workspace.hasSaved })
            try refuse()
            #expect(first.ending == nil, "\(kind): \(first.errorOutput)")
            first.kill(SIGKILL)
            _ = try first.awaitEnding()
            let saved = workspace.savedAt
            let second = try workspace.start()
            // The process saves a new checkpoint soon after its start.
            #expect(eventually { workspace.savedAt != saved })
            try refuse()
            #expect(second.ending == nil, "\(kind): \(second.errorOutput)")
            proxy.release()
            #expect(try second.awaitEnding() == .exited(0), "\(second.errorOutput)")
            try check(workspace, server, kind)
        }
    }

    @Test(
        "a transfer with a generated sequence of pauses and kills completes", arguments: ["upload", "download"],
        [1, 2, 3] as [UInt64])
    func histories(kind: String, seed: UInt64) throws {
        try withWorkspaces(kind) { server, url in
            var random = SeededGenerator(seed: seed)
            let workspace = try RecipeWorkspace(kind, url)
            for _ in 0..<8 {
                let point = Int.random(in: 1...40, using: &random)
                let (ending, code) = try workspace.run(killAt: point, isPaused: random.oneIn(3))
                #expect(ending != .exited(1), "seed \(seed): \(code)")
                if ending == .exited(0) { break }
            }
            if workspace.hasSaved {
                let (last, code) = try workspace.run()
                #expect(last == .exited(0), "seed \(seed): \(code)")
                try check(workspace, server, "seed \(seed)")
            }
        }
    }

    @Test(
        "get and put are killed at each operation on a file, and the same command completes the transfer",
        .enabled(if: FileOperations.isPossible, "needs a compiler for C"), arguments: ["put", "get"])
    func fileOperations(command: String) throws {
        // The file is small, because each write to the partial file is an operation.
        let bytes = Array(RecipeWorkspace.bytes[..<60_000])
        try withServer { server in
            _ = try server.publish(bytes, as: "f.bin")
            for number in 1...500 {
                let home = try CommandHome()
                let path = home.path + "/files/file.bin"
                mkdir(home.path + "/files", 0o700)
                if command == "put" { _ = try home.file(bytes, "files/file.bin") }
                let target = server.url("/files/\(command == "put" ? "put-\(number).bin" : "f.bin")")
                let arguments = command == "put" ? ["put", path, target] : ["get", target, "-o", path]
                let operations = try FileOperations(below: home.path, log: home.path + "-operations")
                defer { unlink(operations.log) }
                let killed = try ChildProcess(
                    try ExecutableLocation.onward(), arguments,
                    environment: operations.environment(killAt: number).merging(
                        ["HOME": home.path, "XDG_STATE_HOME": home.path + "/state"]) { $1 })
                let ending = try killed.awaitEnding()
                let moment = "\(command), operation \(number), \(operations.operations().suffix(1))"
                try home.run(arguments).expect(0)
                let result =
                    command == "put"
                    ? server.published("put-\(number).bin") ?? []
                    : [UInt8](FileManager.default.contents(atPath: path) ?? Data())
                expectSame(result, bytes, "\(moment)")
                #expect(home.stateNames.isEmpty, "\(moment)")
                let names = try FileManager.default.contentsOfDirectory(atPath: home.path + "/files")
                #expect(names == ["file.bin"], "\(moment): \(names)")
                if ending == .exited(0) {
                    #expect(number > 10)
                    return
                }
                #expect(ending == .signaled(SIGKILL), "\(moment): \(killed.errorOutput)")
            }
            Issue.record("\(command) has more than 500 operations")
        }
    }
}
