import ConformanceKit
import Foundation
import Glibc
import SystemCalls
import TestSupport
import Testing

/// Kills the server before each of its operations on files, and compares the events with the state after a restart.
@Suite(
    "Gateway: killed while events are recorded and delivered", .blocking,
    .enabled(if: FileOperations.isPossible, "needs a compiler for C"))
struct GatewayEventKillTests {
    private static let content = Payload.bytes(20_000)
    /// The number of cases among which the operations are distributed in turn.
    private static let cases = 4
    private static let isComplete = ProcessInfo.processInfo.environment["ONWARD_KILLS"] == "all"

    /// The requests that the server has acknowledged.
    private struct Acknowledged {
        var upload: String?
        var isCompleted = false
        var isPlainStored = false
        var canceled: String?
        var isCanceled = false
    }

    /// An upload in two requests, a plain upload, and an upload that is canceled.
    private static func work(_ server: ServerProcess, _ acknowledged: inout Acknowledged) throws {
        acknowledged.upload = try server.begin(.v8, "/files/first", Array(content[..<10_000]))
        let completion = Request.append(
            .v8, try #require(acknowledged.upload), at: 10_000, complete: true, .bytes(Array(content[10_000...])))
        acknowledged.isCompleted = try server.exchange(completion).status == 201
        acknowledged.isPlainStored =
            try server.exchange(Request("PUT", "/files/plain", [], .bytes(content))).status == 201
        acknowledged.canceled = try server.begin(.v8, "/files/canceled", [1])
        let cancellation = Request.cancellation(.v8, try #require(acknowledged.canceled))
        acknowledged.isCanceled = try server.exchange(cancellation).status == 204
    }

    /// Waits until no event waits.
    private static func settle(_ server: ServerProcess) throws {
        _ = try server.metrics { $0["onward_events{state=\"waiting\"}"] == 0 }
    }

    /// Runs the work without a kill, and returns the number of operations.
    private static let operations: Result<Int, any Error> = Result {
        let endpoint = try EventEndpoint()
        let killed = try KillableServer(endpoint.options(), killAt: nil)
        try killed.beginCounting()
        var acknowledged = Acknowledged()
        try work(killed.server, &acknowledged)
        #expect(acknowledged.isCompleted && acknowledged.isPlainStored && acknowledged.isCanceled)
        #expect(endpoint.awaitAccepted(5).count == 5)
        try settle(killed.server)
        return killed.operations
    }

    /// `make test` tests a part; all of them with `ONWARD_KILLS=all` (`make test-kills`).
    @Test("every acknowledged change has its event, and no event reports what did not happen", arguments: 0..<cases)
    func kill(part: Int) throws {
        let count = try Self.operations.get()
        try #require(count > 40)
        // With several servers a case takes long.
        let step = Self.isComplete ? 1 : SharedStorage.isSelected ? max(9, count / 8) : 9
        let numbers = Array(stride(from: 1, through: count, by: step))
        for (index, number) in numbers.enumerated() where index % Self.cases == part {
            try kill(at: number)
        }
    }

    private func kill(at number: Int) throws {
        let endpoint = try EventEndpoint()
        let killed = try KillableServer(endpoint.options(), killAt: number)
        let server = killed.server
        try killed.beginCounting()
        var acknowledged = Acknowledged()
        do {
            try Self.work(server, &acknowledged)
            // The remaining operations remove the delivered events.
            try Self.settle(server)
            try server.crash()
        } catch {
            #expect(try killed.awaitKill(), "\(error)")
        }
        try killed.restart()
        try Self.settle(server)
        let note = Comment(rawValue: "killed at operation \(number): \(acknowledged)")

        let events = endpoint.accepted
        let first = events.kinds(of: "/files/first")
        #expect(first == Array(["created", "completed"].prefix(first.count)), note)
        #expect(acknowledged.upload == nil || !first.isEmpty, note)
        // The start completes an interrupted publication, or there is none.
        #expect((server.published("first") != nil) == (first.count == 2), note)
        if let upload = acknowledged.upload {
            #expect(try (server.retrieve(upload).complete == true) == (first.count == 2), note)
        }
        #expect(!acknowledged.isCompleted || first.count == 2, note)

        let plain = events.kinds(of: "/files/plain")
        #expect(plain.isEmpty || plain == ["completed"] && server.published("plain") == Self.content, note)
        #expect(!acknowledged.isPlainStored || !plain.isEmpty, note)

        let canceled = events.kinds(of: "/files/canceled")
        #expect(canceled == Array(["created", "canceled"].prefix(canceled.count)), note)
        #expect(acknowledged.canceled == nil || !canceled.isEmpty, note)
        if let upload = acknowledged.canceled {
            #expect(try (server.retrieve(upload).status == 404) == (canceled.count == 2), note)
        }
        #expect(!acknowledged.isCanceled || canceled.count == 2, note)
        #expect(endpoint.mistakes.isEmpty, "\(endpoint.mistakes.prefix(2))")

        // The client continues, and the remaining events follow, each with one id.
        if let upload = acknowledged.upload, first.count == 1 {
            let offset = Int(try #require(try server.retrieve(upload).offset))
            let remaining = Array(Self.content[offset...])
            let response = try server.exchange(.append(.v8, upload, at: offset, complete: true, .bytes(remaining)))
            #expect(response.status == 201, "\(response)")
            try Self.settle(server)
            #expect(endpoint.accepted.kinds(of: "/files/first") == ["created", "completed"], note)
        }
    }
}
