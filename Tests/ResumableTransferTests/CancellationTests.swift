import Foundation
import HTTPSemantics
import SystemCalls
import Testing

@testable import ResumableTransfer

/// Cancellations of transfers that have ended with resume data, and deletions that the server does not confirm.
@Suite("Client: cancellation", .timeLimit(.minutes(2)))
struct CancellationTests {
    private static let uri = "https://files.example/box/a"
    private let bytes = sampleBytes(300_000)

    /// A client whose server receives 100000 bytes and then loses connections until `isOnline` is true again.
    private struct Setting {
        let fixture: MockFixture
        let store: TransferStore
        let isOnline = Monitor(true)

        init(
            _ bytes: [UInt8], _ change: (inout TransferClient.Configuration) -> Void = { _ in }
        ) throws {
            let (server, file, isOnline) = (MockUpload(), MockFile(bytes: bytes), isOnline)
            fixture = try MockFixture {
                $0.retry.delays = [.seconds(3600)]
                change(&$0)
            } answer: { request in
                guard isOnline.withLock({ $0 }) else { throw MockFailure.cannotConnect }
                if request.method == .get { return file.response(to: request, cutAt: 100_000) }
                return try await server.response(to: request, cutAt: 100_000)
            }
            store = try TransferStore(directory: fixture.directory.path + "/store", client: fixture.client)
        }

        var deletions: Int { fixture.requests.filter { $0.method == .delete }.count }
        var partialFiles: [String] { names(fixture.directory.path).filter { $0.hasPrefix(".") } }

        func setOnline(_ value: Bool) { isOnline.withLock { $0 = value } }

        private func names(_ path: String) -> [String] {
            (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
        }
    }

    private func upload(_ setting: Setting, isStored: Bool) async throws -> Upload {
        let request = TransferRequest(Self.uri, method: .put, fields: ["Authorization": "Bearer one"])
        let source = DataSource(Data(bytes))
        return isStored
            ? try await setting.store.upload(request, from: source, as: "a")
            : setting.fixture.client.upload(request, from: source)
    }

    private func download(_ setting: Setting, isStored: Bool) async throws -> Download {
        let request = TransferRequest(Self.uri)
        let destination = DownloadDestination.file(setting.fixture.directory.path + "/a")
        return isStored
            ? try await setting.store.download(request, to: destination, as: "a")
            : setting.fixture.client.download(request, to: destination)
    }

    /// Starts a transfer, and waits until its connection was lost.
    private func interrupt(_ transfer: some Transfer) async {
        for await event in transfer.events() { if case .interrupted = event { return } }
    }

    private func error(_ transfer: some Transfer) async -> TransferError? {
        await transferError { _ = try await transfer.value() }
    }

    @Test("cancel after a pause deletes the upload resource, the ticket and the entry", arguments: [false, true])
    func pausedUpload(isStored: Bool) async throws {
        let setting = try Setting(bytes)
        let upload = try await upload(setting, isStored: isStored)
        await interrupt(upload)
        #expect(await upload.pause() != nil)
        await upload.cancel()
        #expect(setting.deletions == 1)
        #expect(setting.fixture.requests.last?.fields["Authorization"] == "Bearer one")
        #expect(await setting.store.entries().isEmpty)
        #expect(setting.fixture.storedNames.isEmpty)
        let error = await error(upload)
        #expect(error?.code == .cancelled && error?.resumeData == nil && upload.resumeData == nil)
        #expect(await upload.pause() == nil)
        await upload.cancel()
        #expect(setting.deletions == 1)
    }

    @Test("cancel after a pause deletes the partial file, the ticket and the entry", arguments: [false, true])
    func pausedDownload(isStored: Bool) async throws {
        let setting = try Setting(bytes)
        let download = try await download(setting, isStored: isStored)
        await interrupt(download)
        #expect(await download.pause() != nil)
        #expect(setting.partialFiles.count == 1)
        await download.cancel()
        #expect(await setting.store.entries().isEmpty)
        #expect(setting.partialFiles.isEmpty && setting.fixture.storedNames.isEmpty)
        #expect(await error(download)?.code == .cancelled && download.resumeData == nil)
    }

    @Test("cancel of an upload that has failed deletes the upload resource", arguments: [false, true])
    func failedUpload(isStored: Bool) async throws {
        let setting = try Setting(bytes)
        let upload = try await upload(setting, isStored: isStored)
        await interrupt(upload)
        await setting.fixture.client.shutDown()
        await upload.cancel()
        // The client was shut down: it sends nothing, and the data is kept.
        #expect(setting.deletions == 0 && upload.resumeData != nil)
        #expect(await error(upload)?.code == .cancelled)
    }

    @Test("if the server cannot be reached, a canceled upload keeps its resume data", arguments: [false, true])
    func offline(isStored: Bool) async throws {
        let setting = try Setting(bytes)
        let upload = try await upload(setting, isStored: isStored)
        await interrupt(upload)
        setting.setOnline(false)
        await upload.cancel()
        #expect(setting.deletions == 1)
        let error = await error(upload)
        #expect(error?.code == .cancelled && error?.resumeData != nil)
        #expect(error?.message.contains("not confirmed") == true)
        #expect(upload.resumeData == error?.resumeData)
        #expect(await setting.store.entries().count == (isStored ? 1 : 0))
        setting.setOnline(true)
        await upload.cancel()
        #expect(setting.deletions == 2 && upload.resumeData == nil)
        #expect(await setting.store.entries().isEmpty)
        #expect(setting.fixture.storedNames.isEmpty)
    }

    @Test("if the server cannot be reached, cancel after a pause keeps the resume data", arguments: [false, true])
    func pausedOffline(isStored: Bool) async throws {
        let setting = try Setting(bytes)
        let upload = try await upload(setting, isStored: isStored)
        await interrupt(upload)
        _ = await upload.pause()
        setting.setOnline(false)
        await upload.cancel()
        let error = await error(upload)
        #expect(error?.code == .cancelled && error?.message.contains("not confirmed") == true)
        let data = try #require(upload.resumeData)
        #expect(data == error?.resumeData)
        #expect(await setting.store.entries().count == (isStored ? 1 : 0))
        setting.setOnline(true)
        if let entry = await setting.store.entry("a") {
            #expect(try await setting.store.discard(entry))
        } else {
            #expect(try await setting.fixture.client.discard(data))
        }
        #expect(setting.deletions == 2)
    }

    @Test("cancel after a pause does not delete an upload that another transfer has resumed", arguments: [false, true])
    func resumedElsewhere(isStored: Bool) async throws {
        let setting = try Setting(bytes)
        let first = try await upload(setting, isStored: isStored)
        await interrupt(first)
        let data = try #require(await first.pause())
        let second =
            isStored
            ? try await upload(setting, isStored: true)
            : try setting.fixture.client.resumeUpload(data, from: DataSource(Data(bytes)))
        await interrupt(second)
        await first.cancel()
        #expect(setting.deletions == 0)
        await second.cancel()
        #expect(setting.deletions == 1)
    }

    @Test("the call of authorize for a deletion is not canceled", arguments: [false, true])
    func authorization(isPaused: Bool) async throws {
        let setting = try Setting(bytes) { $0.authorize = { _ in try Task.checkCancellation() } }
        let upload = try await upload(setting, isStored: false)
        await interrupt(upload)
        if isPaused { _ = await upload.pause() }
        await upload.cancel()
        #expect(setting.deletions == 1 && upload.resumeData == nil)
    }
}
