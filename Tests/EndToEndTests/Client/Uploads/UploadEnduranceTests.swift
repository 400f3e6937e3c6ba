import Foundation
import HTTPSemantics
import ResumableTransfer
import SystemCalls
import TestSupport
import Testing

@Suite("Client: uploads with many interruptions", .blocking)
struct UploadEnduranceTests {
    private static let faults = 50
    private static let restarts = 6

    @Test(
        "a large file arrives unchanged despite 50 resets, stalls and crashes, and only lost bytes are sent twice"
    )
    func disturbed() async throws {
        let seed = SeededGenerator.runSeed
        let server = try ServerProcess()
        defer { server.process.kill(SIGKILL) }
        let file = try LargeFile(server.directory.path + "/source", seed: seed)
        let proxy = try disturbingProxy(to: server.port, seed: seed, size: file.size)
        let fixture = try UploadFixture {
            // Without the upload resource a PUT is sent again from its beginning.
            $0.interimResponseTimeout = .seconds(60)
            $0.stallTimeout = .seconds(1)
            $0.retry.maxRetriesWithoutProgress = 30
        }
        let request = TransferRequest(proxy.url + "/files/large.bin", method: .put)
        let upload = fixture.client.upload(request, from: try FileSource(path: file.path))

        var crashes = 0
        var position: Int64 = 0
        var unacknowledged: Int64 = 0
        var resumptions = 0
        for await event in upload.events() {
            switch event {
            case .progress(let sent, _, _):
                position = sent
                // The server crashes in the middle of a transfer.
                if sent > file.size * Int64(crashes + 1) / Int64(Self.restarts + 1) {
                    crashes += 1
                    try server.restart()
                }
            case .resumed(let offset):
                resumptions += 1
                unacknowledged += max(0, position - offset)
            default: break
            }
        }
        let result = try await upload.value()
        let lost =
            "ONWARD_SEED=\(seed): \(proxy.cuts) faults, \(crashes) crashes, \(unacknowledged) unacknowledged bytes"
        // Every attempt to retrieve the final response can be cut off.
        #expect(result.status == 201 || result.isResponseLost, "\(lost)")
        #expect(result.acknowledged == file.size, "\(lost)")
        #expect(crashes == Self.restarts && proxy.cuts >= Self.faults, "\(lost)")
        #expect(resumptions > Self.faults / 2, "\(lost)")
        #expect(try server.digest(of: "large.bin") == LargeFile.digest(file.path), "\(lost)")
        #expect(result.sent <= file.size / 100 * 102 + unacknowledged, "\(result.sent) bytes sent, \(lost)")
        #expect(proxy.bytesToServer <= file.size / 100 * 102 + unacknowledged, "\(lost)")
        print("\(lost), \(result.sent) of \(file.size) bytes sent, \(result.requests) requests")
        await fixture.client.shutDown()
    }

    /// Breaks every long connection: none transfers more than a small part of the file.
    private func disturbingProxy(to port: UInt16, seed: UInt64, size: Int64) throws -> FaultProxy {
        let random = Monitor((generator: SeededGenerator(seed: seed), isFirst: true))
        let maxBytes = Int(size) / (Self.faults + Self.restarts + 64)
        return try FaultProxy(to: port) {
            random.withLock { state in
                // Responses are small. The first response contains the URL of the upload resource; without this
                // response a PUT is sent again from its beginning.
                let isOfResponse = state.generator.oneIn(8) && !state.isFirst
                state.isFirst = false
                return FaultProxy.Fault(
                    kind: state.generator.oneIn(5) ? .stall : .reset, direction: isOfResponse ? .toClient : .toServer,
                    after: .random(in: isOfResponse ? 1...400 : maxBytes / 2...maxBytes, using: &state.generator),
                    maxBytes: isOfResponse ? maxBytes : nil)
            }
        }
    }
}
