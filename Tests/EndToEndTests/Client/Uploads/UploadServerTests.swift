import Foundation
import HTTPSemantics
import ResumableTransfer
import ResumableUpload
import SystemCalls
import TestSupport
import Testing

@Suite("Client: uploads to the server", .blocking)
struct UploadServerTests {
    @Test(
        "CLI-01 CLI-03: a file and data in memory are uploaded in every dialect and creation style",
        arguments: [Dialect.interop3, .interop5, .interop6, .interop8], [CreationStyle.optimistic, .careful, .plain])
    func completeTransfer(dialect: Dialect, style: CreationStyle) async throws {
        try await withServer { server in
            let fixture = try UploadFixture {
                $0.dialect = dialect
                $0.creation = style
            }
            let bytes = Payload.bytes(3_000_000)
            let request = TransferRequest(server.url("/files/a.bin"), method: .put)
            let result = try await fixture.client.upload(request, from: try fixture.file(bytes)).value()
            #expect(result.status == 201)
            #expect(result.acknowledged == 3_000_000)
            #expect(result.sent == 3_000_000)
            #expect(!result.isResponseLost)
            expectSame(server.published("a.bin") ?? [], bytes)
            let other = TransferRequest(server.url("/files/b.bin"), method: .put)
            _ = try await fixture.client.upload(other, from: DataSource(Data(bytes))).value()
            expectSame(server.published("b.bin") ?? [], bytes)
            await fixture.client.shutDown()
        }
    }

    @Test("CLI-26: an empty file is uploaded in one request", arguments: [CreationStyle.optimistic, .plain])
    func empty(style: CreationStyle) async throws {
        try await withServer { server in
            let fixture = try UploadFixture { $0.creation = style }
            let request = TransferRequest(server.url("/files/empty"), method: .put)
            let result = try await fixture.client.upload(request, from: try fixture.file([])).value()
            #expect(result.status == 201 && result.requests == 1 && result.sent == 0)
            #expect(server.published("empty") == [])
        }
    }

    @Test("CLI-05 CLI-16: appends of a limited size form the complete file")
    func bounded() async throws {
        try await withServer { server in
            let fixture = try UploadFixture { $0.maxRequestContentLength = 100_000 }
            let bytes = Payload.bytes(1_050_000)
            let request = TransferRequest(server.url("/files/a.bin"), method: .put)
            let result = try await fixture.client.upload(request, from: try fixture.file(bytes)).value()
            #expect(result.sent == 1_050_000)
            #expect(result.requests >= 11)
            expectSame(server.published("a.bin") ?? [], bytes)
        }
    }

    @Test("CLI-16: the client respects the max-append-size of the server")
    func serverBound() async throws {
        try await withServer("--max-append-size", "200000") { server in
            let fixture = try UploadFixture()
            let bytes = Payload.bytes(900_000)
            let request = TransferRequest(server.url("/files/a.bin"), method: .put)
            let result = try await fixture.client.upload(request, from: try fixture.file(bytes)).value()
            #expect(result.acknowledged == 900_000)
            expectSame(server.published("a.bin") ?? [], bytes)
        }
    }

    @Test("the digest of the complete file is sent with the creation; a wrong digest of the caller fails the upload")
    func digest() async throws {
        try await withServer { server in
            let bytes = Payload.bytes(2_000_000)
            let fixture = try UploadFixture { $0.shouldSendDigest = true }
            let request = TransferRequest(server.url("/files/a.bin"), method: .put)
            _ = try await fixture.client.upload(request, from: try fixture.file(bytes)).value()
            expectSame(server.published("a.bin") ?? [], bytes)
            let sent = fixture.observed.compactMap { $0.fields["Repr-Digest"] }
            #expect(sent.contains(bytes.digestField()))
            let wrong = TransferRequest(
                server.url("/files/b.bin"), method: .put, fields: ["Repr-Digest": [UInt8]([1]).digestField()])
            let upload = fixture.client.upload(wrong, from: try fixture.file(bytes))
            let error = await upload.failure()
            let status = try? await upload.value().status
            #expect(error != nil || status == 400)
            #expect(server.published("b.bin") == nil)
        }
    }

    @Test("an upload completes after pauses and changes of the client; one client at a time can use the resume data")
    func pauseAndResume() async throws {
        try await withServer { server in
            let bytes = Payload.bytes(12_000_000)
            let first = try UploadFixture()
            let source = try first.file(bytes)
            let proxy = try HoldingProxy(upstream: server.port, limit: 1_000_000)
            let request = TransferRequest(proxy.url + "/files/a.bin", method: .put, fields: ["Prefer": "7"])
            let upload = first.client.upload(request, from: source)
            for await event in upload.events() {
                if case .progress(let sent, _, _) = event, sent > 300_000 { break }
            }
            // Sent bytes need not have arrived yet.
            #expect(eventually { server.unfinished.values.contains { $0 > 300_000 } })
            let data = try #require(await upload.pause())
            #expect(await upload.failure()?.code == .paused)
            #expect(await upload.pause() == data)
            #expect(first.tickets.count == 1)
            await first.client.shutDown()

            let second = try UploadFixture {
                $0.storageDirectory = first.client.configuration.storageDirectory
            }
            let kept = try ResumeData(data.data)
            #expect(kept.path == source.path)
            // An upload that is not started leaves its resume data unused.
            _ = try second.client.resumeUpload(kept)
            let resumed = try second.client.resumeUpload(kept)
            var resumedAt: Int64 = 0
            for await event in resumed.events() {
                if case .checkpoint = event {
                    #expect(await (try second.client.resumeUpload(kept)).failure()?.code == .resumeDataUsed)
                }
                if case .resumed(let offset) = event { resumedAt = offset }
                if case .progress(let sent, _, _) = event, sent > 1_300_000 { break }
            }
            #expect(resumedAt > 0)
            let again = try #require(await resumed.pause())
            proxy.release()
            let last = try second.client.resumeUpload(again)
            let result = try await last.value()
            #expect(result.acknowledged == 12_000_000)
            expectSame(server.published("a.bin") ?? [], bytes)
            #expect(last.progress.fractionCompleted == 1)
            #expect(first.tickets.isEmpty)
            expect(.resumeDataUsed) { () throws(TransferError) in _ = try second.client.resumeUpload(kept) }
            #expect(second.observed.contains { $0.fields["Prefer"] == "7" })
        }
    }

    @Test("CLI-35: a source that was touched, replaced or removed is not resumed, and no request is sent")
    func changedSource() async throws {
        try await withServer { server in
            let fixture = try UploadFixture()
            let source = try fixture.file(Payload.bytes(12_000_000))
            let proxy = try HoldingProxy(upstream: server.port, limit: 1_000_000)
            let upload = fixture.client.upload(
                TransferRequest(proxy.url + "/files/a.bin", method: .put), from: source)
            for await event in upload.events() { if case .checkpoint = event { break } }
            let data = try #require(await upload.pause())
            proxy.release()
            let count = fixture.observed.count
            try FileDescriptor.open(source.path, [.readWrite]).setModified(.init(seconds: 7, nanoseconds: 1))
            expect(.sourceChanged) { () throws(TransferError) in _ = try fixture.client.resumeUpload(data) }
            try FileManager.default.removeItem(atPath: source.path)
            expect(.noSuchSource) { () throws(TransferError) in _ = try fixture.client.resumeUpload(data) }
            #expect(fixture.observed.count == count)
            // The resume data is unused, so the upload can still be removed.
            try await fixture.client.discard(data)
            expect(.resumeDataUsed) { () throws(TransferError) in _ = try fixture.client.resumeUpload(data) }
            #expect(fixture.tickets.isEmpty)
        }
    }

    private func expect(
        _ code: TransferError.Code, sourceLocation: SourceLocation = #_sourceLocation,
        _ body: () throws(TransferError) -> Void
    ) {
        do throws(TransferError) {
            try body()
            Issue.record("no error", sourceLocation: sourceLocation)
        } catch {
            #expect(error.code == code, sourceLocation: sourceLocation)
        }
    }

    @Test("canceling with deletion removes the upload from the server, and canceling without deletion keeps the upload")
    func cancellation() async throws {
        try await withServer { server in
            let fixture = try UploadFixture()
            let source = try fixture.file(Payload.bytes(12_000_000))
            for isDeleting in [true, false] {
                let proxy = try HoldingProxy(upstream: server.port, limit: 1_000_000)
                let request = TransferRequest(proxy.url + "/files/a.bin", method: .put)
                let upload = fixture.client.upload(request, from: source)
                for await event in upload.events() { if case .checkpoint = event { break } }
                let checkpoint = try #require(upload.resumeData)
                await upload.cancel(deletingUpload: isDeleting)
                let error = await upload.failure()
                #expect(error?.code == .cancelled)
                #expect(error?.resumeData == nil)
                let resumed = try fixture.client.resumeUpload(checkpoint)
                if isDeleting {
                    let failure = await resumed.failure()
                    #expect(failure?.code == .gone && failure?.resumeData == nil)
                } else {
                    let data = try #require(await resumed.pause())
                    try await fixture.client.discard(data)
                }
            }
        }
    }

    @Test("a canceled task that awaits an upload throws CancellationError, and the upload has the resume data")
    func taskCancellation() async throws {
        try await withServer { server in
            let fixture = try UploadFixture()
            let bytes = Payload.bytes(12_000_000)
            let proxy = try HoldingProxy(upstream: server.port, limit: 1_000_000)
            let upload = fixture.client.upload(
                TransferRequest(proxy.url + "/files/a.bin", method: .put), from: try fixture.file(bytes))
            let events = upload.events()
            let task = Task { try await upload.value() }
            for await event in events { if case .checkpoint = event { break } }
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            let error = await upload.failure()
            #expect(error?.code == .paused)
            #expect(error?.urlErrorCode == -999)
            let data = try #require(upload.resumeData)
            #expect(data == error?.resumeData)
            proxy.release()
            let result = try await fixture.client.resumeUpload(data).value()
            #expect(result.status == 201)
            expectSame(server.published("a.bin") ?? [], bytes)
        }
    }

    @Test("canceling the progress pauses the upload")
    func progressCancellation() async throws {
        try await withServer { server in
            let fixture = try UploadFixture()
            let proxy = try HoldingProxy(upstream: server.port, limit: 1_000_000)
            let upload = fixture.client.upload(
                TransferRequest(proxy.url + "/files/a.bin", method: .put),
                from: try fixture.file(Payload.bytes(12_000_000)))
            #expect(upload.progress.totalUnitCount == 12_000_000)
            for await event in upload.events() { if case .checkpoint = event { break } }
            upload.progress.cancel()
            #expect(await upload.failure()?.resumeData != nil)
        }
    }

    @Test("64 MiB through a proxy that cuts at random places arrive unchanged, and few bytes are sent twice")
    func randomCuts() async throws {
        try await withServer { server in
            let seed = SeededGenerator.runSeed
            let random = Monitor(SeededGenerator.part(900))
            let proxy = try FaultProxy(upstream: server.port) {
                random.withLock { Int.random(in: 1...(24 << 20), using: &$0) }
            }
            let fixture = try UploadFixture { $0.retry.maxRetriesWithoutProgress = 40 }
            let bytes = Payload.bytes(64 << 20, seed: seed)
            let source = try fixture.file(bytes)
            var results: [UploadResult] = []
            for round in 0..<3 {
                let request = TransferRequest("http://127.0.0.1:\(proxy.port)/files/\(round).bin", method: .put)
                var fixtureError: TransferError?
                for _ in 0..<20 {
                    let upload = fixture.client.upload(request, from: source)
                    do throws(TransferError) {
                        results.append(try await upload.outcome())
                        fixtureError = nil
                    } catch {
                        // The connection was cut before the client got the location of the upload: the upload starts
                        // again.
                        fixtureError = error
                        #expect(error.resumeData == nil, "seed \(seed)")
                        continue
                    }
                    break
                }
                #expect(fixtureError == nil, "seed \(seed)")
                expectSame(server.published("\(round).bin") ?? [], bytes, "seed \(seed)")
            }
            // A cut loses the bytes in the kernel's buffers on both sides of the proxy.
            let waste = results.reduce(0) { $0 + $1.sent - Int64(bytes.count) }
            #expect(waste < Int64(proxy.cuts + 1) * (16 << 20), "seed \(seed): \(waste) bytes, \(proxy.cuts) cuts")
            #expect(proxy.cuts > 0, "seed \(seed)")
        }
    }
}
