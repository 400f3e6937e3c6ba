import ConformanceKit
import FoundationEssentials
import Glibc
import TestSupport
import Testing

/// Files that a check decides about before they are published.
enum CheckFixture {
    static let content = Payload.bytes(100_000)

    /// Runs `body` with a server whose files a scripted endpoint checks at `/check?key=secret`.
    /// - Parameters:
    ///   - settings: the settings after the destination.
    ///   - options: further options of the server.
    static func withCheck(
        by endpoint: ScriptedServer, _ settings: String = "", options: [String] = [],
        sourceLocation: SourceLocation = #_sourceLocation, _ body: (ServerProcess) throws -> Void
    ) throws {
        try withServer(
            options: ["--check", destination(endpoint) + settings] + options, sourceLocation: sourceLocation, body)
    }

    static func destination(_ endpoint: ScriptedServer) -> String { endpoint.url + "/check?key=secret" }

    /// Runs `body` with a server whose files a shell script checks. The script can write to the directory `$D`.
    static func withProgram(
        _ script: String, _ settings: String = "", options: [String] = [],
        sourceLocation: SourceLocation = #_sourceLocation,
        _ body: (ServerProcess, _ directory: TemporaryDirectory) throws -> Void
    ) throws {
        let directory = try TemporaryDirectory()
        let path = try program(script, in: directory)
        try withServer(options: ["--check", path + settings] + options, sourceLocation: sourceLocation) { server in
            try body(server, directory)
        }
    }

    static func program(_ script: String, in directory: TemporaryDirectory) throws -> String {
        let path = try directory.file("check", Array("#!/bin/sh\nD=\(directory.path)\n\(script)\n".utf8))
        chmod(path, 0o700)
        return path
    }

    /// Accepts every file.
    static let accept: ScriptedServer.Script = { _, connection in try connection.respond("204 No Content") }

    /// Responds to each check with the next of these responses, the last of them forever.
    static func responses(_ list: (status: String, fields: [(String, String)], content: String)...) throws
        -> ScriptedServer
    {
        let count = Counter()
        return try ScriptedServer.origin { _, connection in
            let response = list[min(count.next(), list.count) - 1]
            try connection.respond(response.status, response.fields, response.content)
        }
    }

    /// Expects the refusal of a request that can be repeated, and that nothing was published.
    static func expectUnchecked(
        _ response: Response, _ server: ServerProcess, _ version: Interop? = .v8, retryAfter: String = "5",
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        GatewayUploadFixture.expectUnavailable(
            response, version, retryAfter: retryAfter, sourceLocation: sourceLocation)
        expectNoFile(server, sourceLocation: sourceLocation)
    }

    /// Waits until the log contains a text.
    static func expectLog(
        _ server: ServerProcess, _ text: String, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        #expect(
            eventually(within: .seconds(30)) { server.log.contains(text) }, "\(server.log)",
            sourceLocation: sourceLocation)
    }

    static func expectNoFile(_ server: ServerProcess, sourceLocation: SourceLocation = #_sourceLocation) {
        #expect(server.publishedNames() == [], sourceLocation: sourceLocation)
    }

    /// Expects that there are no bytes of unfinished uploads.
    static func expectNoBytes(_ server: ServerProcess, sourceLocation: SourceLocation = #_sourceLocation) {
        #expect(
            eventually(within: .seconds(30)) { server.unfinished.isEmpty }, "bytes of uploads are left",
            sourceLocation: sourceLocation)
    }

    /// Expects a final response with a problem document, which stays the same after a restart.
    static func expectRefused(
        _ response: Response, _ server: ServerProcess, _ location: String, status: Int = 422,
        code: String = "content-refused", detail: String? = nil, length: Int = content.count,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        expectNoFile(server, sourceLocation: sourceLocation)
        expectNoBytes(server, sourceLocation: sourceLocation)
        try server.restart()
        let again = try GatewayUploadFixture.complete(server, location, at: length)
        for response in [response, again] {
            let note = Comment(rawValue: "\(response)")
            #expect(response.status == status, note, sourceLocation: sourceLocation)
            #expect(response.value("Content-Type") == "application/problem+json", note, sourceLocation: sourceLocation)
            #expect(response.problem?.code == code, note, sourceLocation: sourceLocation)
            if let detail { #expect(response.text.contains(detail), note, sourceLocation: sourceLocation) }
            #expect(response.complete == true, note, sourceLocation: sourceLocation)
        }
        #expect(response.text == again.text, sourceLocation: sourceLocation)
    }
}
