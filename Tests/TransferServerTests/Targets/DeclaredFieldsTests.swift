import FoundationEssentials
import HTTPSemantics
import SystemCalls
import TestSupport
import Testing
import UploadStorage

@testable import TransferServer

/// Tests that `ReceivedUpload.fields` has the documented fields for every kind of request and after a crash.
@Suite("The fields that a handler gets", .timeLimit(.minutes(5)))
struct DeclaredFieldsTests {
    /// The way in which the representation arrives.
    enum Delivery: CaseIterable, Sendable {
        case plain, oneRequest, parts
        /// The process ends after the first part.
        case crash
    }

    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        var declared: [String]? = nil
        var reduce: @Sendable (Fields) -> Fields = { $0 }
        let sent: Fields
        let expected: [String]
    }

    private static let digest = "sha-256=:A5BYxvLAy0ksUzsKTRTvd8wPeKvMztUofYShogEc+4E=:"

    static let cases: [Case] = [
        Case(
            testDescription: "the representation metadata by default",
            sent: [
                "content-type": "text/x", "Content-Encoding": "gzip", "Content-Language": "de",
                "CONTENT-DISPOSITION": "attachment; filename=\"ä\"", "X-Other": "1", "Accept": "*/*",
            ],
            expected: [
                "Content-Type: text/x", "Content-Encoding: gzip", "Content-Language: de",
                "Content-Disposition: attachment; filename=\"ä\"",
            ]),
        Case(testDescription: "no declared fields", declared: [], sent: ["Content-Type": "text/x"], expected: []),
        Case(
            testDescription: "a declared field that is not sent", declared: ["X-A"], sent: ["X-B": "1"], expected: []),
        Case(
            testDescription: "repeated fields, in their order, and empty values", declared: ["X-Tag", "X-Empty"],
            sent: ["x-tag": "b", "X-Empty": "", "X-Tag": "a", "X-TAG": "b, c"],
            expected: ["X-Tag: b", "X-Tag: a", "X-Tag: b, c", "X-Empty: "]),
        Case(
            testDescription: "a name that is declared twice", declared: ["X-A", "x-a"], sent: ["X-A": "1", "X-A": "2"],
            expected: ["X-A: 1", "X-A: 2"]),
        Case(
            testDescription: "no credentials, even if they are declared", declared: ["Authorization", "Cookie", "X-A"],
            sent: ["Authorization": "Basic eA==", "Cookie": "a=b", "X-A": "1"], expected: ["X-A: 1"]),
        Case(
            testDescription: "no digest fields unless they are declared", declared: ["X-A"],
            sent: ["X-A": "1", "Repr-Digest": digest, "Want-Repr-Digest": "sha-256=1"], expected: ["X-A: 1"]),
        Case(
            testDescription: "declared digest fields", declared: ["repr-digest", "X-A"],
            sent: ["X-A": "1", "Repr-Digest": digest, "Want-Repr-Digest": "sha-256=1"],
            expected: ["X-A: 1", "Repr-Digest: \(digest)"]),
        Case(
            testDescription: "the part of the declared fields that the handler stores",
            declared: ["X-A", "X-B", "Repr-Digest"],
            reduce: { fields in
                var part = Fields()
                for value in fields.values("X-A") { part.append("X-A", String(value.prefix(1))) }
                return part
            },
            sent: ["X-A": "12", "X-A": "34", "X-B": "5", "Repr-Digest": digest],
            expected: ["X-A: 1", "X-A: 3", "Repr-Digest: \(digest)"]),
        Case(
            testDescription: "a stored part that is empty", declared: ["X-A"], reduce: { _ in [:] }, sent: ["X-A": "1"],
            expected: []),
    ]

    @Test("The fields are the stored part of the declared fields", arguments: cases, Delivery.allCases)
    func fields(_ example: Case, _ delivery: Delivery) async throws {
        let received = Monitor<[String]?>(nil)
        var handler = FunctionHandler { upload in
            received.withLock { $0 = upload.fields.map { "\($0.name): \($0.value)" } }
            return Response(status: 200)
        }
        handler.reduce = example.reduce
        if let declared = example.declared { handler.storedFields = declared }
        let directory = try TemporaryDirectory()
        let configuration = StoreConfiguration(minFree: 0)
        var store = try UploadStore.open(root: directory.path + "/data", configuration: configuration)
        defer { store.close() }
        var server = InProcessServer(
            configuration: ServerConfiguration(isAnonymousAllowed: true), store: store, handlers: [("a", handler)])
        let draft: Fields = ["Upload-Draft-Interop-Version": "8"]
        let response: Response
        switch delivery {
        case .plain: response = try await server.send(.post, "/a/x", fields: example.sent, content: [1, 2, 3])
        case .oneRequest:
            response = try await server.send(
                .post, "/a/x", fields: draft + ["Upload-Complete": "?1"] + example.sent, content: [1, 2, 3])
        case .parts, .crash:
            let creation = try await server.send(
                .post, "/a/x", fields: draft + ["Upload-Complete": "?0"] + example.sent, content: [1])
            let location = try #require(creation.fields["Location"])
            if delivery == .crash {
                // The copy contains the data that the next process finds after a crash of this process.
                try FileManager.default.copyItem(atPath: directory.path + "/data", toPath: directory.path + "/copy")
                store.close()
                store = try UploadStore.open(root: directory.path + "/copy", configuration: configuration)
                server = InProcessServer(
                    configuration: ServerConfiguration(isAnonymousAllowed: true), store: store,
                    handlers: [("a", handler)])
            }
            response = try await server.send(
                .patch, location,
                fields: draft + [
                    "Upload-Offset": "1", "Upload-Complete": "?1", "Content-Type": "application/partial-upload",
                    "X-A": "of the append", "Content-Language": "xx",
                ], content: [2, 3])
        }
        #expect(response.status == 200, "\(response)")
        #expect(received.withLock { $0 } == example.expected)
    }
}
