import ConformanceKit
import HTTPTestSupport
import Testing

/// Requests of tus-js-client, replayed byte for byte. Like that client, the tests regard an upload as complete when the
/// server's offset equals the size of the file. The draft does not require this behavior.
@Suite("tus-js-client", .blocking)
struct TusClientTests {
    private static let versions: [Interop] = [.v5, .v6]
    private static let file = Payload.bytes(90_000)

    /// A request of a recording.
    private struct Recorded {
        let method: String
        let head: String
        let content: ArraySlice<UInt8>
        let isChunked: Bool
        /// Whether the connection is cut after the content.
        let isCut: Bool

        init(_ block: String, version: Interop, upload: String?) throws {
            var lines = block.split(separator: "\n").map(String.init)
            let words = lines.removeLast().split(separator: " ").map(String.init)
            let filled = lines.compactMap { line -> String? in
                var line = line
                if line.hasPrefix("6|") {
                    guard version == .v6 else { return nil }
                    line.removeFirst(2)
                }
                return line.replacing("{version}", with: "\(version.rawValue)").replacing(
                    "{upload}", with: upload ?? "/uploads/none")
            }
            let request = try #require(filled.first)
            method = String(request.prefix { $0 != " " })
            head =
                ([request + " HTTP/1.1", "Host: localhost", "Connection: keep-alive"] + filled.dropFirst())
                .joined(separator: "\r\n") + "\r\n\r\n"
            isCut = words[0] == "cut"
            isChunked = words[0] == "chunks"
            if words.count > 1 {
                let bounds = words[1].split(separator: "..<").compactMap { Int($0) }
                content = TusClientTests.file[bounds[0]..<bounds[1]]
            } else {
                content = []
            }
        }

        func send(on connection: RawConnection) throws {
            // The head and the content are sent together, as Node does.
            try connection.send(Array(head.utf8) + (isChunked ? [] : Array(content)))
            if isChunked {
                if !content.isEmpty { try connection.sendChunk(Array(content)) }
                try connection.sendLastChunk()
            }
        }
    }

    private func blocks(_ text: String) -> [String] {
        var blocks: [[Substring]] = [[]]
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            if line.isEmpty { blocks.append([]) } else { blocks[blocks.count - 1].append(line) }
        }
        return blocks.filter { !$0.isEmpty }.map { $0.joined(separator: "\n") }
    }

    @Test(
        "VER-07 VER-23 VER-24: each upload of tus-js-client is published once, with its name and type",
        arguments: TusRecording.uploads, versions)
    func upload(recording: TusRecording, version: Interop) throws {
        try withSocket { server in
            var upload: String?
            var offset: Int64?
            for block in blocks(recording.blocks) {
                let request = try Recorded(block, version: version, upload: upload)
                let connection = try server.connect()
                try request.send(on: connection)
                if request.isCut {
                    try connection.awaitAcknowledgment()
                    connection.reset()
                    try server.awaitInterruption(request.method)
                    continue
                }
                let response = try connection.readResponse(to: request.method)
                #expect(response.isSuccessful, "\(response)")
                if request.method == "POST" {
                    upload = response.location
                    #expect(upload != nil)
                }
                offset = response.offset
                #expect(offset != nil)
            }
            // At this offset tus-js-client calls onSuccess.
            #expect(offset == Int64(recording.size))
            let names = server.data.publishedNames()
            #expect(names.count == 1)
            let name = try #require(names.first)
            #expect(server.data.published(name) == Array(Self.file[..<recording.size]))
            if let expected = recording.name { #expect(name == expected) }
            let served = try server.download(encoded(name))
            if let type = recording.type { #expect(served.value("Content-Type") == type) }
            let state = try server.retrieve(try #require(upload), version)
            #expect(state.complete == true)
            // A client of the draft that sends an empty append at the end gets the same response.
            let finish = try server.exchange(
                .append(version, try #require(upload), at: recording.size, complete: true, .bytes([])))
            #expect(finish.status == 201)
            #expect(finish.complete == true)
            #expect(server.data.publishedNames() == names)
        }
    }

    private func encoded(_ name: String) -> String {
        name.utf8.map { $0 < 0x80 ? String(UnicodeScalar($0)) : "%" + String($0, radix: 16) }.joined()
    }

    @Test(
        "parallelUploads gets a refusal that names the setting to change, and creates nothing",
        arguments: versions, 0..<3)
    func parallel(version: Interop, number: Int) throws {
        try withSocket { server in
            let upload = try server.begin(version, "/files/other", [1, 2])
            let connection = try server.connect()
            let request = try Recorded(TusRecording.parallel[number], version: version, upload: upload)
            try request.send(on: connection)
            let response = try connection.readResponse(to: request.method)
            #expect(response.status == 400)
            #expect(response.problem?.code == "concatenation-not-supported")
            #expect(response.problem?.detail?.contains("parallelUploads") == true)
            #expect(response.complete == false)
            #expect(!response.fields.contains("Location"))
            #expect(response.interim.isEmpty)
            #expect(server.data.publishedNames().isEmpty)
            #expect(server.data.unfinished.count == 1, "only the earlier upload is left")
        }
    }

    @Test(
        "tus 1.0 gets a refusal that names the setting to change; nothing is created, taken over or published",
        arguments: 0..<9)
    func tus(number: Int) throws {
        try withSocket { server in
            let upload = try server.begin(.v8, "/files/other", Payload.bytes(10))
            // The running append of another client is not affected.
            let other = try server.connect()
            try other.send(Request.append(.v8, upload, at: 10, complete: true, .declared(5)))
            try other.send([1, 2])
            let request = try Recorded(TusRecording.tus[number], version: .v6, upload: upload)
            let connection = try server.connect()
            try request.send(on: connection)
            let response = try connection.readResponse(to: request.method)
            expectTusRefusal(response, to: request.method)
            #expect(server.data.publishedNames().isEmpty)
            #expect(server.data.unfinished.count == 1)
            try other.send([3, 4, 5])
            #expect(try other.readResponse().complete == true)
            #expect(server.data.published("other") == Payload.bytes(10) + [1, 2, 3, 4, 5])
        }
    }

    private func expectTusRefusal(_ response: Response, to method: String) {
        #expect(response.status == 412)
        #expect(response.interim.isEmpty)
        #expect(!response.fields.contains("Tus-Version") && !response.fields.contains("Tus-Resumable"))
        guard method != "HEAD" else { return }
        #expect(response.problem?.code == "tus-not-supported")
        #expect(response.problem?.detail?.contains("protocol") == true)
        #expect(response.problem?.detail?.contains("ietf-draft-05") == true)
    }

    @Test(
        "A page of an allowed origin can send the fields of tus-js-client and read the refusals",
        arguments: ["tus", "parallel"])
    func page(mode: String) throws {
        let origin = "https://app.example"
        try withSocket(settings: .with { $0.server.corsOrigins = [origin] }) { server in
            let requestedFields =
                mode == "tus"
                ? "tus-resumable,upload-length,upload-metadata,x-csrf-token"
                : "upload-complete,upload-concat,upload-draft-interop-version,upload-length,x-csrf-token"
            let preflight = try server.exchange(
                Request(
                    "OPTIONS", "/files/",
                    [
                        ("Origin", origin), ("Access-Control-Request-Method", "POST"),
                        ("Access-Control-Request-Headers", requestedFields),
                    ]))
            #expect(preflight.status == 204)
            #expect(preflight.value("Access-Control-Allow-Origin") == origin)
            #expect(preflight.list("Access-Control-Allow-Methods").contains("post"))
            let allowed = Set(preflight.list("Access-Control-Allow-Headers"))
            for name in requestedFields.split(separator: ",") { #expect(allowed.contains(String(name)), "\(name)") }
            let vary = preflight.list("Vary")
            for name in ["origin", "access-control-request-method", "access-control-request-headers"] {
                #expect(vary.contains(name))
            }
            let block = mode == "tus" ? TusRecording.tus[0] : TusRecording.parallel[0]
            let connection = try server.connect()
            var request = try Recorded(block, version: .v6, upload: nil).head
            request = request.replacing(
                "\r\nConnection", with: "\r\nOrigin: \(origin)\r\nConnection", maxReplacements: 1)
            try connection.send(request)
            let response = try connection.readResponse()
            #expect(response.status == (mode == "tus" ? 412 : 400))
            #expect(response.value("Access-Control-Allow-Origin") == origin)
            #expect(response.problem?.code != nil)
        }
    }

    @Test(
        "tus 1.0 is refused for every path of a file or an upload", arguments: ["/files/", "/files/f", "/uploads/none"])
    func tusEverywhere(target: String) throws {
        try withService { server in
            for method in ["POST", "PUT", "PATCH", "HEAD", "GET", "DELETE", "OPTIONS"] {
                let hasContent = ["POST", "PUT", "PATCH"].contains(method)
                let response = try server.exchange(
                    Request(method, target, [("tus-resumable", "1.0.0")], hasContent ? .bytes([1]) : .none))
                expectTusRefusal(response, to: method)
            }
            #expect(server.data.publishedNames().isEmpty)
            #expect(try server.exchange(Request("GET", "/healthz", [("Tus-Resumable", "1.0.0")])).status == 200)
        }
    }

    @Test(
        "A tus request that also has a field of the draft is handled as the draft requires",
        arguments: Interop.allCases)
    func both(version: Interop) throws {
        try withService { server in
            let both = [("Tus-Resumable", "1.0.0")]
            let location = try server.begin(version, "/files/f", [1], both)
            let head = Request.retrieval(version, location).with("Tus-Resumable", "1.0.0")
            #expect(try server.exchange(head).offset == 1)
            let append = Request.append(version, location, at: 1, complete: true, .bytes([2]))
            #expect(try server.exchange(append.with("Tus-Resumable", "1.0.0")).isSuccessful)
            #expect(server.data.published("f") == [1, 2])
        }
    }

    @Test("A tus client without a token gets 401, not the refusal of tus")
    func withoutToken() throws {
        let server = try InProcessService(.tokens("one first-token-first-token\n"))
        let request = Request("POST", "/files/", [("Tus-Resumable", "1.0.0")], .bytes([1]))
        #expect(try server.exchange(request).status == 401)
    }

    @Test("A page of an origin that is not allowed may send no field")
    func foreignPage() throws {
        try withService(settings: .with { $0.server.corsOrigins = ["https://app.example"] }) { server in
            let preflight = try server.exchange(
                Request(
                    "OPTIONS", "/files/",
                    [
                        ("Origin", "https://evil.example"), ("Access-Control-Request-Method", "POST"),
                        ("Access-Control-Request-Headers", "x-csrf-token"),
                    ]))
            #expect(!preflight.fields.contains("Access-Control-Allow-Headers"))
            #expect(preflight.list("Vary").contains("access-control-request-headers"))
        }
    }

    @Test(
        "Upload-Metadata is sanitized, is used only if Content-Disposition is missing, and is ignored if malformed",
        arguments: [
            // ../../etc/passwd and text/html
            ("filename Li4vLi4vZXRjL3Bhc3N3ZA==,filetype dGV4dC9odG1s", nil, "passwd", "text/html"),
            ("filename YS50eHQ=,filetype dGV4dC9odG1s", "attachment; filename=b.txt", "b.txt", "text/html"),
            ("filename YS50eHQ=,filetype ???", nil, nil, nil), ("filename YS50eHQ=,filename YS50eHQ=", nil, nil, nil),
            ("filename YS50eHQ=,filetype dGV4dA==", nil, "a.txt", "text/plain; charset=utf-8"),
        ] as [(String, String?, String?, String?)])
    func metadata(value: String, disposition: String?, name: String?, type: String?) throws {
        try withService { server in
            var request = Request.creation(.v6, "POST", "/files/", complete: true, .bytes([1]))
                .with("Upload-Metadata", value)
            if let disposition { request = request.with("Content-Disposition", disposition) }
            #expect(try server.exchange(request).status == 201)
            let published = try #require(server.data.publishedNames().first)
            if let name {
                #expect(published == name)
            } else {
                #expect(published.hasPrefix("upload-"))
            }
            let served = try server.download(published).value("Content-Type")
            #expect(served == type ?? "application/octet-stream")
        }
    }
}
