import Foundation
import HTTPSemantics
import ResumableTransfer
import SystemCalls
import TestSupport
import Testing

@Suite("Client: downloads with many interruptions", .blocking)
struct DownloadEnduranceTests {
    private static let faults = 50
    private static let restarts = 6

    @Test(
        "a large file arrives unchanged despite 50 resets, stalls and crashes, and only lost bytes are received twice"
    )
    func disturbed() async throws {
        let seed = SeededGenerator.runSeed
        let server = try ServerProcess()
        defer { server.process.kill(SIGKILL) }
        let file = try LargeFile("large.bin", publishedOn: server, seed: seed)
        let digest = try LargeFile.digest(file.path)
        let maxGap = Int(file.size) / (Self.faults + Self.restarts + 64)
        let random = Monitor(SeededGenerator(seed: seed))
        let proxy = try FaultProxy(to: server.port) {
            random.withLock { generator in
                FaultProxy.Fault(
                    kind: generator.oneIn(5) ? .stall : .reset, direction: .toClient,
                    after: .random(in: maxGap / 2...maxGap, using: &generator))
            }
        }
        let fixture = try UploadFixture {
            $0.stallTimeout = .seconds(1)
            $0.retry.maxRetriesWithoutProgress = 30
        }
        let target = fixture.directory.path + "/copy"
        let download = fixture.client.download(
            TransferRequest(proxy.url + "/files/large.bin", method: .get), to: .file(target))
        var crashes = 0
        for await event in download.events() {
            guard case .received(let count, _) = event,
                count > file.size * Int64(crashes + 1) / Int64(Self.restarts + 1)
            else { continue }
            crashes += 1
            try server.restart()
        }
        let result = try await download.value()
        let summary = "ONWARD_SEED=\(seed): \(proxy.cuts) faults, \(crashes) crashes, \(result.received) bytes received"
        #expect(result.size == file.size, "\(summary)")
        #expect(crashes == Self.restarts && proxy.cuts >= Self.faults, "\(summary)")
        #expect(try LargeFile.digest(target) == digest, "\(summary)")
        // The client keeps the bytes that it has received, so only a few bytes are sent again.
        #expect(result.received <= file.size / 100 * 102, "\(summary)")
        print("\(summary), \(result.requests) requests")
        await fixture.client.shutDown()
    }
}
