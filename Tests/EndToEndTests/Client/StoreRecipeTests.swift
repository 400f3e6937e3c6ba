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
    @Test(
        "one process at a time can run an entry; after a kill another process can run it",
        arguments: ["upload", "download"])
    func secondProcess(kind: String) async throws {
        let server = try ServerProcess([])
        defer { server.process.kill(SIGKILL) }
        if kind == "download" { _ = try server.publish(RecipeWorkspace.bytes, as: "f.bin") }
        let proxy = try HoldingProxy(
            upstream: server.port, limit: 300_000, direction: kind == "upload" ? .toServer : .toClient)
        let workspace = try RecipeWorkspace(
            kind, "http://127.0.0.1:\(proxy.port)/files/" + (kind == "upload" ? "" : "f.bin"), usesStore: true)
        let first = try workspace.start()
        #expect(eventually { workspace.names("store").contains("file.bin.state") }, "\(first.errorOutput)")
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
