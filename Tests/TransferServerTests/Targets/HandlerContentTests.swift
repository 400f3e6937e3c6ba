import Digests
import FoundationEssentials
import HTTPSemantics
import SystemCalls
import TestSupport
import Testing
import UploadStorage

@testable import TransferServer

/// A handler that is a function.
struct FunctionHandler: TargetHandler {
    var storedFields = ["Content-Type", "Content-Encoding", "Content-Language", "Content-Disposition"]
    var reduce: @Sendable (Fields) -> Fields = { $0 }
    var isCompletionRepeatable = false
    let body: @Sendable (ReceivedUpload) async throws -> Response

    func methods(of target: Target) -> [HTTPSemantics.Method] { [.get, .put, .post] }
    func accept(_ proposal: UploadProposal) -> Acceptance { .accept }
    func storedPart(of fields: Fields) -> Fields { reduce(fields) }
    func complete(_ upload: ReceivedUpload) async throws -> Response { try await body(upload) }
    func respond(to request: TargetRequest) -> Response { .text("hello") }
}

/// Tests how handlers read and publish the content of an upload, in a server in this process.
@Suite("The content of an upload", .timeLimit(.minutes(5)))
struct HandlerContentTests {
    private struct Order: Codable, Equatable {
        struct Item: Codable, Equatable { var name: String; var count: Int }
        var items: [Item]
    }

    /// Sends content to a handler, and returns the response and the store with its files.
    private func send(
        _ content: [UInt8], _ fields: Fields = [:],
        to body: @escaping @Sendable (ReceivedUpload) async throws -> Response,
        configuration: StoreConfiguration = StoreConfiguration(minFree: 0),
        _ check: (InProcessServer) async throws -> Void = { _ in }
    ) async throws -> Response {
        let store = try UploadStore.inMemory(configuration: configuration)
        defer { store.close() }
        let server = InProcessServer(
            store: store,
            handlers: [("a", FunctionHandler(body: body)), ("files", FilesHandler(store: store))])
        let response = try await server.send(.post, "/a/x", fields: fields, content: content)
        try await check(server)
        return response
    }

    private func text(_ response: Response) -> String { String(decoding: response.content.bytes ?? [], as: UTF8.self) }

    @Test(
        "A handler can read the entire content up to a maximum; larger content is refused with 413",
        arguments: [0, 1, 100_000, 3_000_000])
    func content(size: Int) async throws {
        let bytes = (0..<size).map { UInt8(truncatingIfNeeded: $0 / 7) }
        let response = try await send(bytes) { Response(status: 200, content: try await $0.content(atMost: size)) }
        #expect(response.status == 200 && response.content.bytes == bytes)
        guard size > 0 else { return }
        let refused = try await send(bytes) { Response(status: 200, content: try await $0.content(atMost: size - 1)) }
        #expect(refused.status == 413 && text(refused).contains("content-too-large"))
    }

    @Test("Each upload has its digest, and an idempotency key of 32 characters that no other upload has")
    func digest() async throws {
        let bytes = Array("content".utf8)
        let keys = Monitor<Set<String>>([])
        for algorithm in DigestAlgorithm.allCases {
            for fields in [["Want-Repr-Digest": "\(algorithm.rawValue)=1"], [:]] as [Fields] {
                let response = try await send(bytes, fields) { upload in
                    keys.withLock { _ = $0.insert(upload.idempotencyKey) }
                    return Response(status: 200, content: try await upload.digest(algorithm))
                }
                let digest = try #require(response.content.bytes)
                #expect(digest.count == algorithm.size)
                let field = fields.isEmpty ? nil : "\(algorithm.rawValue)=:\(Data(digest).base64EncodedString()):"
                #expect(response.fields["Repr-Digest"] == field)
            }
        }
        #expect(keys.withLock { $0.count == 4 && $0.allSatisfy { $0.utf8.count == 32 } })
    }

    @Test("A handler can reject the content after a publication under a name that no file can have")
    func rejectionAfterPublication() async throws {
        let store = try UploadStore.inMemory(configuration: StoreConfiguration(minFree: 0))
        defer { store.close() }
        let handler = FunctionHandler(body: { upload in
            let name = try #require(PublishedName(segments: ["directory"]))
            await #expect(throws: StoreError.targetIsDirectory) {
                try await upload.publish(Publication(name: name) { _, _ in Response(status: 201) })
            }
            throw ContentRejection(ProblemDetails(status: 422, detail: "rejected", code: "rejected"))
        })
        let server = InProcessServer(
            store: store, handlers: [("a", handler), ("files", FilesHandler(store: store))])
        #expect(try await server.send(.put, "/files/directory/file", content: [1]).status == 201)
        let response = try await server.send(
            .post, "/a/x", fields: ["Want-Repr-Digest": "sha-256=1"], content: [1])
        #expect(response.status == 422 && text(response).contains("\"rejected\""), "\(text(response))")
        #expect(response.fields.contains("Repr-Digest"))
    }

    @Test("A handler receives the content of two requests, and a request can be sent to the Location of a response")
    func resumed() async throws {
        let response = try await send([]) { upload in
            Response(status: 200, content: try await upload.content(atMost: 10))
        } _: { server in
            let created = try await server.send(
                .post, "/a/x", fields: ["Upload-Draft-Interop-Version": "8", "Upload-Complete": "?0"],
                content: Array("hel".utf8))
            let completed = try await server.send(
                .patch, #require(created.fields["Location"]),
                fields: [
                    "Upload-Draft-Interop-Version": "8", "Upload-Complete": "?1", "Upload-Offset": "3",
                    "Content-Type": "application/partial-upload",
                ],
                content: Array("lo".utf8))
            #expect(completed.content.bytes == Array("hello".utf8))
        }
        #expect(response.content.bytes == [])
    }

    @Test("The text of a 404 names /files/ only if the server has it")
    func unknown() async throws {
        let store = try UploadStore.inMemory()
        defer { store.close() }
        for (prefix, isNamed) in [("files", true), ("media", false)] {
            let server = InProcessServer(store: store, handlers: [(prefix, FilesHandler(store: store))])
            let response = try await server.send(.get, "/nothing")
            #expect(response.status == 404 && text(response).contains("\"not-found\""))
            #expect(text(response).contains("/files/") == isNamed)
        }
    }

    @Test("The chunks of an upload have its content in order", arguments: [0, 1, 65_536, 65_537, 1_000_000])
    func chunks(size: Int) async throws {
        let bytes = (0..<size).map { UInt8(truncatingIfNeeded: $0 / 7) }
        let response = try await send(bytes) { upload in
            var content: [UInt8] = []
            for try await chunk in upload { content += chunk }
            return Response(status: 200, content: content)
        }
        #expect(response.status == 200 && response.content.bytes == bytes)
    }

    @Test("JSON is decoded and encoded")
    func json() async throws {
        let response = try await send(Array(#"{"items": [{"name": "a", "count": 2}]}"#.utf8)) { upload in
            var order = try await upload.decode(Order.self)
            order.items[0].count += 1
            return try .json(order, status: .created)
        }
        #expect(response.status == 201 && response.fields["Content-Type"] == "application/json")
        let order = try JSONDecoder().decode(Order.self, from: Data(response.content.bytes ?? []))
        #expect(order.items.map(\.count) == [3])
    }

    @Test(
        "JSON that is malformed, of another type, too large or too deep is refused with a 4xx status",
        arguments: [
            ("", 400, "it is not JSON"), ("{", 400, "it is not JSON"), ("[]", 400, "wrong type"),
            ("{}", 400, "missing at items"), (#"{"items": [{"name": "a"}]}"#, 400, "missing at items[0].count"),
            (#"{"items": [{"name": 1, "count": 1}]}"#, 400, "wrong type at items[0].name"),
            (#"{"items": null}"#, 400, "at items"),
            (#"{"items": [], "x": "\#(String(repeating: "x", count: 1000))"}"#, 413, "at most 1000 bytes"),
            (String(repeating: "[", count: 900), 400, "it is not JSON"),
        ])
    func invalidJSON(content: String, status: Int, detail: String) async throws {
        let response = try await send(Array(content.utf8)) { upload in
            try .json(try await upload.decode(Order.self, atMost: 1000))
        }
        #expect(response.status.rawValue == status)
        #expect(text(response).contains(detail), "\(text(response))")
        #expect(!text(response).contains("Order"), "the response must not contain a type name of the program")
    }

    @Test("A text response has the media type text/plain")
    func textResponse() async throws {
        let response = try await send([]) { _ in .text("Grüße", status: .accepted) }
        #expect(response.status == 202 && response.fields["Content-Type"] == "text/plain; charset=utf-8")
        #expect(text(response) == "Grüße")
    }

    @Test("An upload cannot be used after its handler has returned")
    func late() async throws {
        let kept = Monitor<ReceivedUpload?>(nil)
        _ = try await send([1]) { upload in
            kept.withLock { $0 = upload }
            return Response(status: 200)
        }
        let upload = try #require(kept.withLock { $0 })
        await #expect(throws: (any Error).self) { try await upload.content(atMost: 10) }
        let name = try #require(PublishedName(segments: ["late"]))
        await #expect(throws: (any Error).self) {
            try await upload.publish(Publication(name: name) { _, _ in Response(status: 201) })
        }
    }

    // MARK: Forms

    private static let form: Fields = ["Content-Type": "multipart/form-data; boundary=AB"]

    private func part(_ parameters: String, _ content: String, _ fields: String = "") -> String {
        "--AB\r\nContent-Disposition: form-data; \(parameters)\r\n\(fields)\r\n\(content)\r\n"
    }

    @Test("The parts of a form are read and published")
    func form() async throws {
        let large = String(repeating: "0123456789", count: 100_000)
        let content =
            part("name=\"title\"", "Grüße")
            + part("name=\"file\"; filename=\"C:\\\\x\\\\..\\\\a.txt\"", large, "Content-Type: text/markdown\r\n")
            + part("name=\"order\"", #"{"items": []}"#, "Content-Type: application/json\r\n") + "--AB--\r\n"
        let response = try await send(Array(content.utf8), Self.form) { upload in
            let parts = try await upload.formParts()
            guard parts.count == 3, let name = parts[1].safeFilename,
                let published = PublishedName(segments: ["inbox", name])
            else { return Response(status: 500) }
            let publication = try await parts[1].publish(
                Publication(name: published, fields: ["Content-Type": parts[1].mediaType]) { created, name in
                    .text(name.path, status: created ? .created : .ok)
                })
            var chunks = 0
            for try await chunk in parts[1] { chunks += chunk.count }
            _ = try await parts[2].decode(Order.self)
            for algorithm in DigestAlgorithm.allCases {
                var digest = RunningDigest(algorithm.hash)
                Array(large.utf8).withUnsafeBytes { digest.update($0) }
                #expect(try await parts[1].digest(algorithm) == digest.finalized())
            }
            let lines = [
                parts.map(\.name).joined(separator: ","), parts.map(\.mediaType).joined(separator: ","),
                parts.map { "\($0.length)" }.joined(separator: ","), try await parts[0].text(atMost: 100),
                "\(publication.status)", "\(chunks)", parts[1].filename ?? "",
            ]
            return .text(lines.joined(separator: "\n"))
        } _: { server in
            let file = try await server.send(.get, "/files/inbox/a.txt")
            #expect(file.status == 200 && file.fields["Content-Type"] == "text/markdown")
            #expect(file.content.bytes == Array(large.utf8))
        }
        #expect(
            text(response)
                == """
                title,file,order
                text/plain,text/markdown,application/json
                7,1000000,13
                Grüße
                201
                1000000
                C:\\x\\..\\a.txt
                """)
    }

    @Test(
        "A form that cannot be read is refused with a 4xx status",
        arguments: [
            ("multipart/form-data; boundary=AB", "--AB\r\n", 400, "malformed-form"),
            ("multipart/form-data", "--AB--", 415, "unsupported-media-type"),
            ("text/plain", "--AB--", 415, "unsupported-media-type"),
            (
                "multipart/form-data; boundary=AB",
                String(repeating: "--AB\r\nContent-Disposition: form-data; name=a\r\n\r\n\r\n", count: 4) + "--AB--",
                413,
                "form-too-large"
            ),
            (
                "multipart/form-data; boundary=AB",
                "--AB\r\nContent-Disposition: form-data; name=\(String(repeating: "a", count: 200))\r\n\r\n\r\n--AB--",
                413, "form-too-large"
            ),
        ])
    func refusedForm(type: String, content: String, status: Int, code: String) async throws {
        let response = try await send(Array(content.utf8), ["Content-Type": type]) { upload in
            .text("\(try await upload.formParts(limits: FormLimits(maxParts: 3, maxHeadSize: 150)).count)")
        }
        #expect(response.status.rawValue == status && text(response).contains(code), "\(text(response))")
    }

    @Test("A part larger than its maximum, or a text that is not UTF-8, is refused with a 4xx status")
    func refusedPart() async throws {
        let content = Array((part("name=a", "12345") + "--AB--").utf8)
        let large = try await send(content, Self.form) { .text(try await $0.formParts()[0].text(atMost: 4)) }
        #expect(large.status == 413)
        let bytes = Array("--AB\r\nContent-Disposition: form-data; name=a\r\n\r\n".utf8) + [0xFF]
        let text = try await send(bytes + Array("\r\n--AB--".utf8), Self.form) {
            .text(try await $0.formParts()[0].text(atMost: 4))
        }
        #expect(text.status == 400)
    }

    @Test("If a part cannot be published and the handler throws the error, the status is 409 or 507")
    func unpublishedPart() async throws {
        let content = Array((part("name=a; filename=f", String(repeating: "x", count: 1000)) + "--AB--").utf8)
        let body: @Sendable (ReceivedUpload) async throws -> Response = { upload in
            guard let first = PublishedName(path: "a/b"), let second = PublishedName(path: "a") else {
                return Response(status: 500)
            }
            let part = try await upload.formParts()[0]
            _ = try await part.publish(Publication(name: first) { _, _ in Response(status: 201) })
            return try await part.publish(Publication(name: second) { _, _ in Response(status: 201) })
        }
        #expect(try await send(content, Self.form, to: body).status == 409)
        let quota = StoreConfiguration(minFree: 0, quotaPerPrincipal: 1200)
        #expect(try await send(content, Self.form, to: body, configuration: quota).status == 507)
    }

    // MARK: The server in this process

    @Test("A server without a socket handles uploads, files with ranges, listings and refusals")
    func inProcess() async throws {
        let store = try UploadStore.inMemory()
        defer { store.close() }
        let server = InProcessServer(
            store: store,
            handlers: [
                ("files", FilesHandler(store: store)),
                ("a", FunctionHandler { .text("\($0.length) \($0.target.path)") }),
            ])
        let draft: Fields = ["Upload-Draft-Interop-Version": "8"]
        let creation = try await server.send(.post, "/a/x", fields: draft + ["Upload-Complete": "?0"], content: [1, 2])
        let location = try #require(creation.fields["Location"])
        let last = try await server.send(
            .patch, location,
            fields: draft + [
                "Upload-Offset": "2", "Upload-Complete": "?1", "Content-Type": "application/partial-upload",
            ], content: [3])
        #expect(last.status == 200 && text(last) == "3 /a/x")
        #expect(try await server.send(.put, "/files/f", content: [1, 2, 3]).status == 201)
        let range = try await server.send(.get, "/files/f", fields: ["Range": "bytes=1-"])
        #expect(range.status == 206 && range.content.bytes == [2, 3])
        #expect(try await server.send(.head, "/files/f").content.bytes == [])
        #expect(text(try await server.send(.get, "/files/", fields: ["Accept": "application/json"])).contains("\"f\""))
        #expect(try await server.send(.get, "/a/x").content.bytes == Array("hello".utf8))
        #expect(try await server.send(.get, "/none").status == 404)
        #expect(try await server.send(.get, "no path").status == 400)
        #expect(try await server.send(.get, "/files/f", fields: ["Host": "evil.example"]).status == 403)
    }

    @Test("A canceled task cancels the handler of its request")
    func canceledRequest() async throws {
        let store = try UploadStore.inMemory()
        defer { store.close() }
        let isCalled = Monitor(false)
        let server = InProcessServer(
            store: store,
            handlers: [
                (
                    "a",
                    FunctionHandler { _ in
                        isCalled.withLock { $0 = true }
                        isCalled.notifyAll()
                        try await Task.sleep(for: .seconds(3600))
                        return Response(status: 200)
                    }
                )
            ])
        let sending = Task { try await server.send(.post, "/a/x", content: [1]) }
        _ = try await onThread { isCalled.wait(until: SystemClock.deadline(in: .seconds(60))) { $0 ? true : nil } }
        sending.cancel()
        await #expect(throws: InProcessServer.ConnectionClosed.self) { try await sending.value }
    }
}
