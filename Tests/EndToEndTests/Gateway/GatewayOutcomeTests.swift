import ConformanceKit
import Foundation
import HTTPSemantics
import SystemCalls
import TestSupport
import Testing

/// Tests `onward outcomes` while a server is running.
@Suite("Gateway: requests whose outcome is unknown", .blocking)
struct GatewayOutcomeTests {
    private typealias Fixture = GatewayUploadFixture
    private static let secret = "Bearer forwarded-credential-0123456789"

    private func outcomes(_ server: ServerProcess, _ arguments: String...) throws -> OnwardRun {
        try server.run(["outcomes"] + arguments)
    }

    /// The number of requests that are kept, read without the command.
    private func keptCount(_ server: ServerProcess) throws -> Int {
        if let shared = server.shared { return try shared.database.query("SELECT key FROM onward.retained").count }
        let names = (try? FileManager.default.contentsOfDirectory(atPath: server.root + "/retained")) ?? []
        // Each request has a description and a content.
        #expect(names.count.isMultiple(of: 2), "\(names)")
        return names.count / 2
    }

    /// An origin that closes the connections of the first requests, and then runs the script.
    private func origin(
        failures: Int, _ script: @escaping ScriptedServer.Script = GatewayUploadFixture.accept
    ) throws -> ScriptedServer {
        let left = Monitor(failures)
        return try ScriptedServer.origin { request, connection in
            let fails = left.withLock { count in
                count -= 1
                return count >= 0
            }
            guard fails else { return try script(request, connection) }
            try connection.discardContent()
            connection.close()
        }
    }

    /// Uploads content in one request whose outcome is unknown, and returns the value of `Onward-Upload`.
    private func lose(
        _ server: ServerProcess, _ origin: ScriptedServer, _ version: Interop? = .v8,
        _ content: [UInt8] = GatewayUploadFixture.content
    ) throws -> String {
        var request = Request.creation(version, "POST", Fixture.target, complete: true, .bytes(content))
        request.fields += Fixture.fields + [("Authorization", Self.secret)]
        Fixture.expectUnknown(try server.exchange(request), version)
        return try #require(origin.requests.last?.fields["Onward-Upload"])
    }

    @Test(
        "it is listed with everything but credentials, and sent again with the same content",
        arguments: GatewayUploadFixture.versions)
    func resent(version: Interop?) throws {
        let origin = try origin(failures: 1)
        try withGateway(to: origin) { server in
            #expect(try outcomes(server, "list").output == "")
            let upload = try lose(server, origin, version)
            // The client's cancellation and a restart change nothing.
            try server.restart()
            let listed = try outcomes(server, "list")
            let words = ["POST", Fixture.target, "length=100000", "principal=anonymous", "origin=\(origin.url)"]
            #expect(listed.ending == .exited(0) && listed.output.hasPrefix(upload + " "), "\(listed.output)")
            for word in words { #expect(listed.output.contains(" \(word)"), "\(word): \(listed.output)") }
            let json = try outcomes(server, "list", "--json").output
            let members = try #require(JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any])
            #expect(members["upload"] as? String == upload && members["length"] as? Int == 100_000, "\(json)")
            #expect((members["time"] as? String)?.hasSuffix("Z") == true, "\(json)")
            #expect(StoredBytes(of: server).places(of: "forwarded-credential") == [])

            let sent = try outcomes(server, "resend", String(upload.prefix(8)))
            #expect(sent.ending == .exited(0), "\(sent.output)")
            #expect(
                sent.output == "the application responded with status 201; the request is removed\n\(Fixture.answer)\n",
                "\(sent.output)")
            #expect(origin.requests.count == 2)
            let request = try #require(origin.requests.last)
            #expect(request.content == Fixture.content && request.isComplete)
            #expect(request.method == "POST" && request.target == Fixture.target, "\(request.text)")
            #expect(request.fields["Onward-Upload"] == upload && !request.fields.contains("Authorization"))
            #expect(request.fields.values("X-Label") == ["one", "two"], "\(request.text)")
            #expect(try outcomes(server, "list").output == "")
            #expect(try keptCount(server) == 0)
            try outcomes(server, "resend", upload).expect(66, "no request", upload)
        }
    }

    @Test("a request without a response of the application is kept, until it is dropped")
    func kept() throws {
        let origin = try origin(failures: 2) { _, connection in try connection.respond("503 Later") }
        try withGateway(to: origin) { server in
            let upload = try lose(server, origin)
            try outcomes(server, "resend", upload).expect(69, "unknown", "kept")
            try outcomes(server, "resend", upload).expect(69, "503", "kept")
            origin.stop()
            try outcomes(server, "resend", upload).expect(69, "did not process", "kept")
            #expect(try outcomes(server, "list").output.hasPrefix(upload))
            let dropped = try outcomes(server, "drop", upload)
            #expect(dropped.ending == .exited(0) && dropped.output.contains(upload), "\(dropped.output)")
            #expect(try keptCount(server) == 0 && origin.requests.count == 3)
        }
    }

    @Test("a response of more than 1 MiB is reported with the status of the application")
    func largeResponse() throws {
        let origin = try origin(failures: 1) { _, connection in
            try connection.discardContent()
            try connection.respond("201 Created", [], String(repeating: "a", count: (1 << 20) + 1))
        }
        try withGateway(to: origin) { server in
            let upload = try lose(server, origin)
            let sent = try outcomes(server, "resend", upload)
            #expect(sent.ending == .exited(0), "\(sent.output)")
            #expect(
                sent.output == "the application responded with status 201, and more than 1 MiB of content;"
                    + " the request is removed\n", "\(sent.output.prefix(300))")
            #expect(try keptCount(server) == 0)
        }
    }

    @Test("a request that is being sent cannot be sent or dropped by another process")
    func inUse() throws {
        let hold = Hold()
        let origin = try origin(failures: 1) { request, connection in
            hold.wait()
            try GatewayUploadFixture.accept(request, connection)
        }
        try withGateway(to: origin) { server in
            let upload = try lose(server, origin)
            let first = try ChildProcess(
                ExecutableLocation.onward(), ["outcomes", "resend", upload] + server.storage,
                environment: server.shared?.environment ?? [:])
            #expect(origin.awaitRequests(2))
            for command in ["resend", "drop"] { try outcomes(server, command, upload).expect(75, "sending") }
            // A data directory has a lock for each request, which also prevents that the list reads it.
            let listed = try outcomes(server, "list").output
            #expect(listed.hasPrefix(upload) && (server.shared != nil || listed.contains("in use")), "\(listed)")
            hold.release()
            #expect(try first.awaitEnding() == .exited(0))
            #expect(try origin.requests.count == 2 && keptCount(server) == 0)
        }
    }

    @Test("names of uploads: all of them have to be clear before anything is done")
    func unclearNames() throws {
        let origin = try origin(failures: .max)
        try withGateway(to: origin) { server in
            // Two of 17 hexadecimal numbers have the same first digit.
            var digits: [Character: [String]] = [:]
            var uploads: [String] = []
            for _ in 0..<17 {
                let upload = try lose(server, origin, .v8, [1])
                uploads.append(upload)
                digits[try #require(upload.first), default: []].append(upload)
            }
            let shared = try #require(digits.first { $0.value.count > 1 }).key
            for command in ["resend", "drop"] {
                try outcomes(server, command, uploads[0], String(shared)).expect(66, "several", "'\(shared)'")
                try outcomes(server, command, uploads[0], "nothing").expect(66, "no request", "'nothing'")
                try outcomes(server, command, uploads[0], "").expect(66, "no request", "''")
                try outcomes(server, command, uploads[0], "../uploads").expect(66, "no request")
                try outcomes(server, command).expect(64, "UPLOAD is missing")
            }
            try outcomes(server, "list", uploads[0]).expect(64, "give 'list'")
            #expect(try keptCount(server) == 17 && origin.requests.count == 17)
            let dropped = try server.run(["outcomes", "drop"] + uploads + [uploads[0]])
            #expect(dropped.ending == .exited(0), "\(dropped.output)")
            #expect(dropped.output.split(separator: "\n").count == 17, "\(dropped.output)")
            #expect(try keptCount(server) == 0)
        }
    }

    // MARK: Uploads whose clients do not know their URL

    @Test("an interrupted upload without a URL leaves nothing")
    func interruptedWithoutURL() throws {
        let origin = try ScriptedServer.origin(Fixture.accept)
        try withGateway(to: origin) { server in
            let connection = try server.connect()
            try connection.send(
                "POST /app/x HTTP/1.1\r\nHost: \(server.authority)\r\nUpload-Complete: ?1\r\n"
                    + "Content-Length: 100000\r\n\r\nbeginning")
            let deadline = Deadline(in: .seconds(20))
            while server.unfinished.isEmpty, !deadline.isOver { Deadline.pause(.milliseconds(10)) }
            #expect(server.unfinished.count == 1)
            connection.close()
            while !server.unfinished.isEmpty, !deadline.isOver { Deadline.pause(.milliseconds(10)) }
            #expect(server.unfinished.isEmpty && origin.requests.isEmpty)
        }
    }

    @Test("an upload without a URL whose origin is down is removed without an event: the client sends it again")
    func unavailableWithoutURL() throws {
        let origin = try ScriptedServer.origin(Fixture.accept)
        origin.stop()
        try withGateway(to: origin, "retry=0s", options: ["--events", "http://127.0.0.1:1/"]) { server in
            let refused = try server.exchange(
                .creation(nil, "POST", "/app/x", complete: true, .bytes(Fixture.content)))
            #expect(refused.status == 503 && refused.offset == nil, "\(refused)")
            #expect(server.unfinished.isEmpty)
            #expect(try outcomes(server, "list").output == "")
            #expect(try server.events("list").output == "")
            for command in ["retry", "drop"] {
                try server.events(command).expect(64, "EVENT or --all is missing")
                try server.events(command, "1", "--all").expect(64, "'1' and --all cannot be combined")
            }
        }
    }
}
