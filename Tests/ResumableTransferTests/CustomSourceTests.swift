import Foundation
import HTTPSemantics
import ResumableTransfer
import SystemCalls
import Testing

/// A source that cannot be read at an offset and after it.
private struct FailingSource: UploadSource {
    let error: SourceError
    var failsAt: Int64 = 100_000

    var length: Int64? { 300_000 }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(SourceError) -> Int {
        guard offset < failsAt else { throw error }
        return Int(min(Int64(buffer.count), failsAt - offset))
    }

    func acknowledged(upTo offset: Int64) {}
}

@Suite("Client: errors of custom sources", .timeLimit(.minutes(2)))
struct CustomSourceTests {
    private let request = TransferRequest("https://files.example/a", method: .put)

    private func error(
        of source: FailingSource, _ change: (inout TransferClient.Configuration) -> Void = { _ in }
    ) async throws -> (error: TransferError?, methods: [HTTPSemantics.Method]) {
        let server = MockUpload()
        let fixture = try MockFixture(change) { try await server.response(to: $0) }
        let error = await transferError { _ = try await fixture.client.upload(request, from: source).value() }
        return (error, fixture.requests.map(\.method))
    }

    @Test("a source that has changed ends the upload with sourceChanged, and the upload is deleted")
    func changed() async throws {
        let (error, methods) = try await error(of: FailingSource(error: .changed))
        #expect(error?.code == .sourceChanged && methods == [.put, .delete])
    }

    @Test("the error of the system is the underlying error, although the deletion of the upload gets a response")
    func system() async throws {
        let (error, methods) = try await error(of: FailingSource(error: .system(.inputOutput)))
        #expect(error?.code == .sourceUnavailable && methods == [.put, .delete])
        #expect(error?.underlying as? Errno == .inputOutput)
        #expect(error?.message == "The source could not be read at offset 100000.")
    }

    @Test("the error of a source that cannot be read for the digest has the same code and underlying error")
    func digest() async throws {
        let (error, methods) = try await error(of: FailingSource(error: .system(.inputOutput))) {
            $0.shouldSendDigest = true
        }
        #expect(error?.code == .sourceUnavailable && methods.isEmpty)
        #expect(error?.underlying as? Errno == .inputOutput)
    }

    @Test("a source can report an error of its own")
    func custom() async throws {
        struct Locked: Error {}
        let (error, methods) = try await error(of: FailingSource(error: .failed(Locked())))
        #expect(error?.code == .sourceUnavailable && methods == [.put, .delete])
        #expect(error?.underlying is Locked)
        #expect(SourceError.failed(Locked()) == .failed(Locked()) && SourceError.failed(Locked()) != .changed)
        #expect(Set([SourceError.failed(Locked()), .failed(Locked()), .system(.inputOutput)]).count == 2)
    }
}
