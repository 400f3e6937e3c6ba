import ConformanceKit
import HTTPSemantics
import SystemCalls
import TestSupport
import Testing

/// An upload through a gateway, and the one request that the origin has to get for it.
enum GatewayUploadFixture {
    /// All versions of the protocol; `nil` is the version without a number.
    static let versions: [Interop?] = Interop.allCases + [nil]
    static let content = Payload.bytes(100_000)
    static let target = "/app/in%20box/?kind=x&sig=a%2Fb%3D"
    /// Fields of the creation that the origin gets.
    static let fields = [
        ("Content-Type", "text/x-test; charset=utf-8"), ("X-Album", "summer, \"sea\""), ("X-Label", "one"),
        ("X-Label", "two"),
    ]
    /// Fields of the creation that no origin gets.
    static let unforwarded = [
        ("Idempotency-Key", "\"chosen-by-the-client\""), ("Onward-Principal", "mallory"), ("Onward-Digest", "none"),
        ("onward-upload", "0123"), ("X_Album", "winter"), ("Onward_Principal", "mallory"), ("Connection", "X-Hop"),
        ("X-Hop", "here"), ("TE", "trailers"), ("Want-Repr-Digest", "sha-256=1"), ("Proxy-Connection", "keep-alive"),
    ]
    /// Fields that this server adds.
    static let added: Set<String> = [
        "host", "content-length", "onward-upload", "forwarded", "x-forwarded-for", "x-forwarded-proto",
        "x-forwarded-host", "via",
    ]

    /// The response of ``accept``.
    static let answer = "{\"stored\": true}"

    /// Accepts every request with a response that has all kinds of fields.
    static let accept: ScriptedServer.Script = { _, connection in
        try connection.respond(
            "201 Made",
            [
                ("Content-Type", "application/json"), ("Location", "/things/1"), ("X-Thing", "1"), ("X-Thing", "one"),
                ("ETag", "\"v1\""), ("Set-Cookie", "session=live-cookie-0123456789"), ("Set-Cookie", "other=1"),
                ("Connection", "X-Private"), ("X-Private", "hop"), ("Upload-Complete", "?0"), ("Upload-Offset", "7"),
            ],
            answer)
    }

    /// Expects the response of ``accept``.
    /// - Parameter isLive: whether the response belongs to the request that completed the upload.
    static func expectAnswer(
        _ response: Response, _ version: Interop?, isCreation: Bool = false, isLive: Bool = true,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let note = Comment(rawValue: "\(response)")
        #expect(response.status == 201, note, sourceLocation: sourceLocation)
        #expect(response.text == answer, note, sourceLocation: sourceLocation)
        #expect(response.states(complete: true, in: version), note, sourceLocation: sourceLocation)
        #expect(response.value("Content-Type") == "application/json", note, sourceLocation: sourceLocation)
        #expect(response.value("ETag") == "\"v1\"", note, sourceLocation: sourceLocation)
        #expect(response.fields.values("X-Thing") == ["1", "one"], note, sourceLocation: sourceLocation)
        #expect(!response.fields.contains("X-Private"), note, sourceLocation: sourceLocation)
        #expect(
            response.fields.values("Set-Cookie") == (isLive ? ["session=live-cookie-0123456789", "other=1"] : []), note,
            sourceLocation: sourceLocation)
        let isMoved = isCreation && (version.map { $0.rawValue <= 6 } ?? false)
        #expect(
            response.value(isMoved ? "Content-Location" : "Location") == "/things/1", note,
            sourceLocation: sourceLocation)
        #expect(response.fields.values("Upload-Offset") != ["7"], note, sourceLocation: sourceLocation)
    }

    /// Expects the ordinary request for an upload with ``fields``.
    /// - Parameter credentials: the fields that the request has in addition.
    static func expectRequest(
        _ request: ReceivedRequest?, method: String = "POST", target: String = target,
        _ content: [UInt8] = content, credentials: [(String, String)] = [],
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let request = try #require(request, "the origin got no request", sourceLocation: sourceLocation)
        let note = Comment(rawValue: request.text)
        #expect(request.method == method, note, sourceLocation: sourceLocation)
        #expect(request.target == target, note, sourceLocation: sourceLocation)
        #expect(request.isComplete && request.content == content, "the content", sourceLocation: sourceLocation)
        #expect(request.fields["Content-Length"] == "\(content.count)", note, sourceLocation: sourceLocation)
        let key = request.fields["Onward-Upload"] ?? ""
        #expect(key.utf8.count == 32 && key.allSatisfy(\.isHexDigit), note, sourceLocation: sourceLocation)
        expectFields(request, credentials: credentials, sourceLocation: sourceLocation)
    }

    /// Expects that a request has ``fields``, and no others except these.
    /// - Parameters:
    ///   - credentials: fields that the request has in addition.
    ///   - added: the names of fields with any value that the request has in addition.
    ///   - allowed: the names of fields that it can have.
    static func expectFields(
        _ request: ReceivedRequest, credentials: [(String, String)] = [], added: Set<String> = added,
        allowed: Set<String> = [], sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let note = Comment(rawValue: request.text)
        let sent = fields + credentials
        let names = Set(sent.map { $0.0.lowercased() })
        for name in names {
            let values = sent.filter { $0.0.lowercased() == name }.map(\.1)
            #expect(request.fields.values(name) == values, note, sourceLocation: sourceLocation)
        }
        let received = Set(request.fields.map { $0.name.lowercased() })
        #expect(received.subtracting(allowed) == names.union(added), note, sourceLocation: sourceLocation)
    }

    /// Creates an upload with ``fields`` whose first bytes are `content`, and returns its location.
    static func begin(
        _ server: ServerProcess, _ version: Interop? = .v8, _ content: [UInt8] = content, target: String = target,
        fields: [(String, String)] = fields + unforwarded
    ) throws -> String {
        var request = Request.creation(version, "POST", target, complete: false, .bytes(content))
        request.fields += fields
        let response = try server.exchange(request)
        guard response.status == 201, let location = response.location else {
            throw TestFailure("creation answered by \(response)")
        }
        return location
    }

    /// Requests the response of an upload whose bytes have all arrived.
    static func complete(
        _ server: ServerProcess, _ location: String, at offset: Int = content.count, _ version: Interop? = .v8,
        _ fields: [(String, String)] = []
    ) throws -> Response {
        var request = Request.append(version, location, at: offset, complete: true, .bytes([]))
        request.fields += fields
        return try server.exchange(request)
    }

    /// Expects that the upload is complete and waits for its origin.
    static func expectWaiting(
        _ server: ServerProcess, _ location: String, _ version: Interop? = .v8, length: Int = content.count,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let state = try server.retrieve(location, version)
        #expect(state.status == 204, "\(state)", sourceLocation: sourceLocation)
        #expect(state.states(complete: false, in: version), "\(state)", sourceLocation: sourceLocation)
        #expect(state.offset == Int64(length), "\(state)", sourceLocation: sourceLocation)
    }

    /// Expects the refusal of a request that can be repeated: the origin got nothing, or the route is repeatable.
    static func expectUnavailable(
        _ response: Response, _ version: Interop? = .v8, retryAfter: String = "1", length: Int = content.count,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let note = Comment(rawValue: "\(response)")
        #expect(response.status == 503, note, sourceLocation: sourceLocation)
        #expect(response.states(complete: false, in: version), note, sourceLocation: sourceLocation)
        #expect(response.value("Retry-After") == retryAfter, note, sourceLocation: sourceLocation)
        #expect(response.offset == Int64(length), note, sourceLocation: sourceLocation)
    }

    /// Expects the final response of an upload whose effect is unknown.
    static func expectUnknown(
        _ response: Response, _ version: Interop? = .v8, sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let note = Comment(rawValue: "\(response)")
        #expect(response.status == 502, note, sourceLocation: sourceLocation)
        #expect(response.problem?.code == "origin-outcome-unknown", note, sourceLocation: sourceLocation)
        #expect(response.states(complete: true, in: version), note, sourceLocation: sourceLocation)
    }

    /// Expects that the upload has a final response that stays the same whatever the client does, and that the origin
    /// gets nothing more.
    static func expectFinal(
        _ server: ServerProcess, _ origin: ScriptedServer, _ location: String, length: Int = content.count,
        sourceLocation: SourceLocation = #_sourceLocation, _ expect: (Response) -> Void
    ) throws {
        let calls = origin.requests.count
        for round in 0..<2 {
            let state = try server.retrieve(location)
            #expect(state.complete == true, "\(state)", sourceLocation: sourceLocation)
            expect(try complete(server, location, at: length))
            let wrong = try server.exchange(.append(.v8, location, at: 0, complete: true, .bytes([1, 2, 3])))
            #expect(wrong.status == 409 && wrong.complete == false, "\(wrong)", sourceLocation: sourceLocation)
            if round == 0 { try server.restart() }
        }
        #expect(origin.requests.count == calls, "the origin was called again", sourceLocation: sourceLocation)
    }
}

/// Holds scripts of an origin until the test releases them.
final class Hold: Sendable {
    private let isReleased = Monitor(false)

    func release() {
        isReleased.raise()
    }

    /// Waits for the release, or for a minute.
    func wait() { _ = isReleased.wait(until: Deadline(in: .seconds(60)).nanoseconds) { $0 ? () : nil } }
}
