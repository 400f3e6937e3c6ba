import ConformanceKit
import HTTPSemantics
import SystemCalls
import TestSupport
import Testing
import TransferServer
import UploadStorage

/// A function of a program that decides about files before they are published.
@Suite("Checks of files in a program", .blocking)
struct FileCheckTests {
    private static let content = Payload.bytes(200_000)

    /// Runs `body` with a server whose files below `/checked` this function checks.
    private func withCheck(
        _ check: @escaping @Sendable (ReceivedUpload) async throws -> PublicationVerdict,
        _ body: (EmbeddedServer, UploadStore) throws -> Void
    ) throws {
        let directory = try TemporaryDirectory()
        let store = try UploadStore.open(
            root: directory.path + "/data", configuration: StoreConfiguration(minFree: 0))
        let host = try EmbeddedServer(store: store, targets: [("checked", FilesHandler(store: store, check: check))])
        try body(host, store)
    }

    /// Requests for the same file: plain, and resumable in one request.
    private static func requests(_ path: String) -> [Request] {
        [Request("PUT", path, [], .bytes(content)), .creation(.v8, "PUT", path, complete: true, .bytes(content))]
    }

    @Test("the function gets the upload, may suspend, and its verdict decides")
    func verdicts() throws {
        let digests = Monitor<[String]>([])
        try withCheck { upload in
            try await Task.sleep(for: .milliseconds(1))
            var digest = [UInt8]()
            for try await chunk in upload { digest += chunk }
            let text = digest.sha256
            digests.withLock { $0.append(text) }
            return switch upload.target.segments.last {
            case "moved": .acceptAs("/checked/new/")
            case "refused": .refuse(HTTPSemantics.Response(ProblemDetails(status: 415, detail: "no", code: "my-code")))
            default: .accept
            }
        } _: { host, store in
            for request in Self.requests("/checked/plain") {
                #expect([201, 204].contains(try host.exchange(request).status))
            }
            for request in Self.requests("/checked/moved") {
                let response = try host.exchange(request)
                #expect(response.value("Location")?.hasPrefix("/checked/new/moved") == true, "\(response)")
            }
            for request in Self.requests("/checked/refused") {
                let response = try host.exchange(request)
                #expect(response.status == 415 && response.problem?.code == "my-code", "\(response)")
            }
            #expect(digests.withLock { $0 } == Array(repeating: Self.content.sha256, count: 6))
            for path in ["plain", "new/moved", "new/moved (1)"] {
                let name = try #require(PublishedName(path: path))
                #expect(try store.publishedFile(name).attributes.size == Int64(Self.content.count), "\(path)")
            }
            #expect(throws: StoreError.notFound) {
                try store.publishedFile(try #require(PublishedName(path: "refused")))
            }
        }
    }

    @Test(
        "the number of calls until the file is published, if the function has no valid verdict at first",
        arguments: 0..<5)
    func failures(kind: Int) throws {
        struct Failure: Error {}
        let calls = Monitor(0)
        try withCheck { upload in
            let call = calls.withLock { calls in
                calls += 1
                return calls
            }
            if call > 1 { return .accept }
            switch kind {
            case 0: throw Failure()
            case 1: throw TargetUnavailable("busy", retryAfter: .seconds(9))
            case 2: throw CancellationError()
            // The file of another handler.
            case 3: return .acceptAs("/files/x")
            default: return .refuse(HTTPSemantics.Response(status: 200))
            }
        } _: { host, store in
            let location = try host.begin(.v8, "PUT", "/checked/x", [1, 2])
            let refused = try host.exchange(.append(.v8, location, at: 2, complete: true, .bytes([3])))
            #expect(refused.status == 503 && refused.problem?.code == "target-unavailable", "\(refused)")
            #expect(refused.value("Retry-After") == (kind == 1 ? "9" : "5"))
            let final = try host.exchange(.append(.v8, location, at: 3, complete: true, .bytes([])))
            #expect(final.status == 201, "\(final)")
            #expect(calls.withLock { $0 } == 2)
        }
    }
}
