import ConformanceKit
import TestSupport
import Testing

/// Content that reaches the declared length in a request with `Upload-Complete: ?0`, as tus-js-client sends the last
/// content of a stream: versions 5 and 6 complete the upload, the other versions do not. The harness
/// accepts both.
@Suite("Content that reaches the declared length", .serialized, .blocking)
struct ReachedLengthTests {
    private static let completing: [Interop] = [.v5, .v6]
    private static let explicit: [Interop] = [.v4, .v7, .v8]
    private static let content = Payload.bytes(100_000)

    @Test("VER-24 APP-28: the target runs once, even with several requests at the same time", arguments: completing)
    func once(version: Interop) throws {
        let target = RecordingTarget()
        try withTarget(target) { host in
            var creation = Request.creation(version, "POST", "/inbox/doc", complete: false, length: 8, .bytes([1, 2]))
            creation.fields.append(("X-Note", "n"))
            let location = try #require(try host.exchange(creation).location)
            target.hold()
            let last = try host.connect()
            try last.send(Request.append(version, location, at: 2, complete: false, .bytes(Payload.bytes(6))))
            try target.awaitCalls(1)
            // All content has arrived, but the target is still running; the retrieval does not affect it.
            let state = try host.exchange(.retrieval(version, location))
            #expect(state.offset == 8)
            #expect(state.complete == false)
            let others = try (0..<6).map { _ in try host.connect() }
            for (index, connection) in others.enumerated() {
                try connection.send(
                    Request.append(version, location, at: 8, complete: index.isMultiple(of: 2), .bytes([])))
            }
            target.release()
            let answer = try last.readResponse()
            #expect(answer.status == 203)
            #expect(answer.complete == true)
            for connection in others {
                let response = try connection.readResponse()
                #expect(response.status == 203)
                #expect(response.content == answer.content)
            }
            #expect(target.calls.count == 1)
            #expect(target.calls.first?.content == [1, 2] + Payload.bytes(6))
        }
    }

    // MARK: Requests without a response

    @Test(
        "VER-24 OFF-10: after a kill of the server with all content received, a retrieval completes the upload",
        arguments: completing, [true, false])
    func killed(version: Interop, namesVersion: Bool) throws {
        try withServer { server in
            let location = try received(server, version)
            try server.crash()
            try server.restart()
            #expect(server.published("f") == nil)
            // In the other versions the upload stays open.
            let open = try server.retrieve(location, .v8)
            #expect(open.offset == Int64(Self.content.count))
            #expect(open.complete == false)
            #expect(server.published("f") == nil)
            let state = try server.retrieve(location, namesVersion ? version : nil)
            #expect(state.status == 204)
            #expect(state.offset == Int64(Self.content.count))
            #expect(state.length == Int64(Self.content.count))
            #expect(state.complete == true)
            #expect(server.published("f") == Self.content)
            let again = try server.exchange(
                .append(version, location, at: Self.content.count, complete: true, .bytes([])))
            #expect(again.status == 201)
            #expect(again.complete == true)
        }
    }

    @Test(
        "VER-24: after a lost connection with all content received, a retrieval completes the upload",
        arguments: completing)
    func cut(version: Interop) throws {
        try withServer { server in
            let location = try received(server, version, isConnectionKept: false)
            try server.awaitInterruption("PATCH")
            // The content of the retrieval itself does not belong to the upload.
            let head = Request("HEAD", location, Request.versionField(version), .bytes([1, 2, 3]))
            let state = try server.exchange(head)
            #expect(state.status == 204)
            #expect(state.complete == true)
            #expect(server.published("f") == Self.content)
        }
    }

    @Test("VER-24 APP-28: several retrievals at the same time complete the upload once", arguments: completing)
    func retrievals(version: Interop) throws {
        let target = RecordingTarget()
        try withTarget(target) { host in
            // Version 8 leaves the upload open.
            let creation = Request.creation(.v8, "POST", "/inbox/doc", complete: false, length: 3, .bytes([1, 2, 3]))
            let location = try #require(try host.exchange(creation).location)
            let connections = try (0..<8).map { _ in try host.connect() }
            for connection in connections { try connection.send(Request.retrieval(version, location)) }
            for connection in connections {
                let response = try connection.readResponse(to: "HEAD")
                #expect(response.status == 204)
                #expect(response.offset == 3)
            }
            #expect(try host.exchange(.retrieval(version, location)).complete == true)
            #expect(target.calls.count == 1)
        }
    }

    @Test(
        "VER-24: a server that is killed around the last byte loses no file of a client that reports success",
        arguments: completing)
    func killedAroundTheEnd(version: Interop) throws {
        try withServer { server in
            for number in 0..<6 {
                let name = "f\(number)"
                let location = try server.begin(version, "/files/" + name, [], length: Self.content.count)
                let connection = try server.connect()
                try connection.send(
                    Request.append(version, location, at: 0, complete: false, .declared(Int64(Self.content.count))))
                try connection.send(Self.content.dropLast(number))
                if !number.isMultiple(of: 2) { try connection.awaitAcknowledgment() }
                try server.crash()
                try server.restart()
                // Retrieves the offset and sends the remaining content with ?0, as tus-js-client does.
                var state = try server.retrieve(location, version)
                if state.offset != Int64(Self.content.count) {
                    let offset = Int(try #require(state.offset))
                    #expect(state.complete == false)
                    state = try server.exchange(
                        .append(version, location, at: offset, complete: false, .bytes(Array(Self.content[offset...]))))
                    #expect(state.offset == Int64(Self.content.count))
                }
                #expect(state.complete == true)
                #expect(server.published(name) == Self.content)
            }
        }
    }

    /// Creates an upload to `f` whose content has arrived, by a chunked append that does not end.
    private func received(
        _ server: ServerProcess, _ version: Interop, isConnectionKept: Bool = true
    ) throws -> String {
        let location = try server.begin(version, "/files/f", [], length: Self.content.count)
        let connection = try server.connect()
        try connection.send(Request.append(version, location, at: 0, complete: false, .openChunks))
        try connection.sendChunk(Self.content)
        let isReceived: Bool? = pollUntil(within: .seconds(60)) {
            server.unfinished.values.contains(Self.content.count) ? true : nil
        }
        try #require(isReceived == true)
        if isConnectionKept {
            // A retrieval in version 8 stores the bytes that have arrived, and completes nothing.
            #expect(try server.retrieve(location, .v8).offset == Int64(Self.content.count))
        } else {
            connection.close()
        }
        return location
    }
}
