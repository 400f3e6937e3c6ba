import ConformanceKit
import Foundation
import Glibc
import HTTPSemantics
import ResumableTransfer
import SystemCalls
import TestSupport
import Testing

/// Runs the program of the article on relaunches in several processes.
@Suite("Client: a store of several processes", .blocking(limit: .seconds(30 * 60)))
struct StoreRecipeTests {
    private static let bytes = Payload.bytes(1_000_000)

    /// The directories of one transfer through all its runs.
    private struct Workspace {
        let directory: TemporaryDirectory
        let kind: String
        let url: String
        var file: String { directory.path + "/file.bin" }
        var arguments: [String] { ["store-" + kind, directory.path, file, url] }

        init(_ kind: String, _ url: String) throws {
            directory = try TemporaryDirectory()
            self.kind = kind
            self.url = url
            if kind == "upload" { try Data(StoreRecipeTests.bytes).write(to: URL(filePath: file)) }
        }

        func names(_ folder: String) -> [String] {
            (try? FileManager.default.contentsOfDirectory(atPath: directory.path + "/" + folder)) ?? []
        }

        func start(killAt point: Int? = nil) throws -> ChildProcess {
            try ChildProcess(
                try ExecutableLocation.beside("TransferRecipes"), arguments,
                environment: point.map { ["ONWARD_KILL_AT": "\($0)"] } ?? [:])
        }

        func run(killAt point: Int? = nil) throws -> (ChildProcess.Ending, String) {
            let process = try start(killAt: point)
            return (try process.awaitEnding(), process.errorOutput)
        }
    }

    @Test(
        "one process at a time can run an entry; after a kill another process can run it",
        arguments: ["upload", "download"])
    func secondProcess(kind: String) async throws {
        let server = try ServerProcess([])
        defer { server.process.kill(SIGKILL) }
        if kind == "download" { _ = try server.publish([UInt8](repeating: 7, count: 1_000_000), as: "f.bin") }
        let proxy = try HoldingProxy(
            upstream: server.port, limit: 300_000, direction: kind == "upload" ? .toServer : .toClient)
        let workspace = try Workspace(
            kind, "http://127.0.0.1:\(proxy.port)/files/" + (kind == "upload" ? "" : "f.bin"))
        let first = try workspace.start()
        let isSaved: Bool? = pollUntil(within: .seconds(60)) {
            workspace.names("store").contains("file.bin.state") ? true : nil
        }
        #expect(isSaved == true, "\(first.errorOutput)")
        let (ending, code) = try workspace.run()
        #expect(ending == .exited(1) && code == "in-use\n", "\(ending) \(code)")
        var configuration = TransferClient.Configuration()
        configuration.storageDirectory = workspace.directory.path + "/storage"
        let store = try TransferStore(
            directory: workspace.directory.path + "/store", client: TransferClient(configuration))
        let entry = try #require(await store.entries().first)
        #expect(entry.isRunning && entry.process == first.identifier)
        do throws(TransferError) {
            _ = try await store.resume(entry)
            Issue.record("resumed twice")
        } catch {
            #expect(error.code == .inUse && error.message.contains("\(first.identifier)"))
        }
        first.kill(SIGKILL)
        _ = try first.awaitEnding()
        #expect(await store.entries().first?.isRunning == false)
        #expect(try await store.resume(entry).resumeData?.kind == entry.kind)
        proxy.release()
    }
}
