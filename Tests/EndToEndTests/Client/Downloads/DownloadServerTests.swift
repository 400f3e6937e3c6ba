import Foundation
import HTTPSemantics
import ResumableTransfer
import ResumableUpload
import SystemCalls
import TestSupport
import Testing

@Suite("Client: downloads from the server", .blocking)
struct DownloadServerTests {
    /// A client like the fixture's, without a limit of the rate.
    private func clientWithoutLimit(_ fixture: UploadFixture) -> TransferClient {
        var configuration = fixture.client.configuration
        configuration.rateLimit = nil
        return TransferClient(configuration)
    }

    @Test("a file and an empty file are downloaded completely, with a digest if the caller requests one")
    func completeTransfer() async throws {
        try await withServer { server in
            let bytes = Payload.bytes(5_000_000)
            try server.publish(bytes, as: "a.bin")
            try server.publish([], as: "empty")
            let fixture = try UploadFixture()
            let result = try await fixture.download(
                server.url("/files/a.bin"), ["Want-Repr-Digest": "sha-256=1"]
            ).value()
            #expect(result.status == 200 && result.size == 5_000_000)
            expectSame(fixture.result, bytes)
            let empty = try await fixture.download(server.url("/files/empty")).value()
            #expect(empty.size == 0)
            #expect(fixture.result.isEmpty)
            #expect(fixture.downloads == ["result.bin"])
        }
    }

    @Test(
        "RNG-27 RNG-28 RNG-32: a download over connections that break at random places is complete",
        arguments: [UInt64](1...6))
    func broken(seed: UInt64) async throws {
        try await withServer { server in
            let bytes = Payload.bytes(8_000_000, seed: seed)
            try server.publish(bytes, as: "a.bin")
            let proxy = try FaultProxy(
                to: server.port, seed: seed, bytes: 200...3_000_000, directions: [.toClient])
            let fixture = try UploadFixture {
                $0.retry.maxRetriesWithoutProgress = 50
                $0.stallTimeout = .seconds(5)
            }
            let download = try fixture.download(proxy.url + "/files/a.bin", ["Want-Repr-Digest": "sha-512=1"])
            let history = await download.history()
            _ = try await download.value()
            expectSame(fixture.result, bytes, "seed \(seed)")
            #expect(proxy.cuts > 0, "seed \(seed)")
            #expect(history.interruptions.count >= 1, "seed \(seed)")
        }
    }

    @Test(
        "RNG-27: a download completes despite several pauses, changes of the client and broken connections",
        arguments: [UInt64](1...3))
    func pauses(seed: UInt64) async throws {
        try await withServer { server in
            let bytes = Payload.bytes(20_000_000, seed: seed)
            try server.publish(bytes, as: "a.bin")
            let proxy = try FaultProxy(
                to: server.port, seed: seed, bytes: 100_000...6_000_000, directions: [.toClient])
            let fixture = try UploadFixture {
                $0.retry.maxRetriesWithoutProgress = 50
                $0.rateLimit = 20_000_000
            }
            var random = SeededGenerator(seed: seed)
            var download = try fixture.download(proxy.url + "/files/a.bin")
            var pauses = 0
            while true {
                try await Task.sleep(for: .milliseconds(Int.random(in: 50...250, using: &random)))
                guard let data = await download.pause() else { break }
                pauses += 1
                download = try TransferClient(fixture.client.configuration).resumeDownload(try ResumeData(data.data))
            }
            // If the download was paused before the first byte, there is nothing to resume.
            if pauses == 0 { download = try fixture.download(proxy.url + "/files/a.bin") }
            _ = try await download.value()
            expectSame(fixture.result, bytes, "seed \(seed)")
            #expect(fixture.downloads == ["result.bin"], "seed \(seed)")
        }
    }

    @Test("RNG-27 RNG-29: a file that is replaced during the download is downloaded completely in its new version")
    func replaced() async throws {
        try await withServer { server in
            let old = Payload.bytes(6_000_000, seed: 1)
            let new = Payload.bytes(6_000_000, seed: 2)
            try server.publish(old, as: "a.bin")
            let fixture = try UploadFixture { $0.rateLimit = 300_000 }
            let download = try fixture.download(server.url("/files/a.bin"))
            await download.awaitBytes(1)
            let data = try #require(await download.pause())
            try server.publish(new, as: "a.bin")
            let result = try await clientWithoutLimit(fixture).resumeDownload(data).value()
            #expect(result.status == 200)
            expectSame(fixture.result, new)
        }
    }

    @Test("RNG-30: a download that has every byte sends one more request, and the server sends no content")
    func alreadyComplete() async throws {
        try await withServer { server in
            let bytes = Payload.bytes(1_000_000)
            try server.publish(bytes, as: "a.bin")
            let place = Monitor("")
            let calls = Counter()
            let fixture = try UploadFixture {
                $0.authorize = { _ in
                    guard calls.next() == 1 else { return }
                    // A directory at the destination, created so late that the client notices it at the end only.
                    try FileManager.default.createDirectory(
                        atPath: place.withLock { $0 }, withIntermediateDirectories: false)
                }
            }
            place.withLock { $0 = fixture.destination }
            let download = try fixture.download(server.url("/files/a.bin"))
            let error = await download.failure()
            #expect(error?.code == .destinationUnusable)
            try FileManager.default.removeItem(atPath: fixture.destination)
            let result = try await fixture.client.resumeDownload(try #require(error?.resumeData)).value()
            #expect(result.received <= 1)
            expectSame(fixture.result, bytes)
        }
    }

    @Test("a download of a missing file fails with the code refused and the status 404")
    func missing() async throws {
        try await withServer { server in
            let fixture = try UploadFixture()
            let error = await (try fixture.download(server.url("/files/none"))).failure()
            #expect(error?.code == .refused && error?.status == 404)
            #expect(fixture.downloads.isEmpty)
        }
    }
}
