import ConformanceKit
import Glibc
import SystemCalls
import TestSupport
import Testing

/// Kills the server before each of the operations on files with which it sends a complete upload to an application.
@Suite(
    "Gateway: killed at every step of the request for a complete upload", .blocking,
    .enabled(if: FileOperations.isPossible, "needs a compiler for C"))
struct GatewayEffectOnceKillTests {
    private typealias Fixture = GatewayUploadFixture
    private static let content = Payload.bytes(20_000)
    /// Whether the origin gets a path, which needs a data directory.
    private static let handovers = SharedStorage.isSelected ? [false] : [false, true]
    private static let secret = "Bearer forwarded-credential-0123456789"

    /// A gateway that is killed before one operation on a file of its data directory.
    private struct Place {
        let origin: ScriptedServer
        /// The directory in which the origin gets the file and from which it moves the file away; `nil`: it gets the
        /// content.
        let handover: PathHandover?
        private let gateway: KillableServer
        var server: ServerProcess { gateway.server }
        /// The number of operations since ``begin()``.
        var operations: Int { gateway.operations }

        /// - Parameter number: the number of the operation after ``begin()``; `nil`: the server is not killed.
        init(_ route: String, byPath isByPath: Bool, killAt number: Int?) throws {
            let handover = isByPath ? try PathHandover() : nil
            self.handover = handover
            origin = try ScriptedServer.origin { request, connection in
                // After a kill, the next start may remove the file before the origin moves it.
                if let handover, (try? handover.move(request)) == nil { return try connection.respond("500 Gone") }
                try Fixture.accept(request, connection)
            }
            let setting = handover.map { ",handover=\($0.path)" } ?? ""
            // The data directory and that of the route are in the same directory.
            gateway = try KillableServer(
                ["--route", "/app=\(origin.url),access=open\(route)\(setting)"],
                below: isByPath ? "$(dirname \"$(dirname \"$4\")\")" : "$4", killAt: number)
        }

        /// Waits for the end of the server that was killed. Returns false if it was not killed.
        func awaitKill() throws -> Bool { try gateway.awaitKill() }

        /// Starts the server again. This time it is not killed.
        func restart() throws { try gateway.restart() }

        /// The number of bytes that arrive before the server can be killed: half of the content, or, by path, all of it,
        /// because the steps of an append are the same.
        private var first: Int { GatewayEffectOnceKillTests.content.count / (handover == nil ? 2 : 1) }

        /// Creates an upload with the first bytes of the content.
        func begin() throws -> String {
            let content = Array(GatewayEffectOnceKillTests.content[..<first])
            let location = try Fixture.begin(server, .v8, content, fields: Fixture.fields)
            try gateway.beginCounting()
            return location
        }

        /// Completes the upload with the remaining content.
        func complete(_ location: String) throws -> Response {
            try server.exchange(
                Request.append(
                    .v8, location, at: first, complete: true,
                    .bytes(Array(GatewayEffectOnceKillTests.content[first...]))
                ).with("Authorization", GatewayEffectOnceKillTests.secret))
        }

        /// Resumes the upload as a client does: retrieves the offset and sends the remaining bytes, until the response
        /// is final.
        func resume(_ location: String) throws -> Response {
            for _ in 0..<10 {
                let state = try server.retrieve(location)
                let offset = Int(try #require(state.offset))
                let remaining = Array(GatewayEffectOnceKillTests.content[offset...])
                let response = try server.exchange(
                    .append(.v8, location, at: offset, complete: true, .bytes(remaining)))
                if response.complete == true { return response }
            }
            throw TestFailure("no final response")
        }
    }

    /// Kills the server at every operation from the request that completes the upload to its response.
    private func kill(
        _ route: String, byPath isByPath: Bool, _ check: (Place, Response, _ callsBefore: Int) throws -> Void
    ) throws {
        let entire = try Place(route, byPath: isByPath, killAt: nil)
        let location = try entire.begin()
        Fixture.expectAnswer(try entire.complete(location), .v8)
        #expect(entire.origin.requests.count == 1)
        let count = entire.operations
        try #require(count > 10)
        var kills = 0
        let numbers = KillableServer.numbers(of: count)
        for number in numbers {
            let place = try Place(route, byPath: isByPath, killAt: number)
            let location = try place.begin()
            do {
                Fixture.expectAnswer(try place.complete(location), .v8)
                try place.server.crash()
            } catch is WireFailure {
                #expect(try place.awaitKill())
                kills += 1
            }
            #expect(
                StoredBytes(of: place.server).places(of: "forwarded-credential").isEmpty,
                "killed at operation \(number)")
            let calls = place.origin.requests.count
            try place.restart()
            #expect(place.handover?.names ?? [] == [], "killed at operation \(number)")
            let response = try place.resume(location)
            try check(place, response, calls)
            let again = try Fixture.complete(place.server, location, at: Self.content.count)
            #expect(again.status == response.status && again.complete == true, "killed at operation \(number)")
            // A sweep removes bytes whose upload had ended before the kill.
            let isEmpty = pollUntil(within: .seconds(30)) { () -> Bool? in
                let hasBytes =
                    place.server.shared == nil
                    ? !PathHandover.entries(place.server.root + "/uploads").isEmpty : !place.server.unfinished.isEmpty
                return hasBytes ? nil : true
            }
            #expect(isEmpty == true && place.handover?.names ?? [] == [], "killed at operation \(number)")
            for file in place.handover?.movedFiles ?? [] {
                let content = PathHandover.content((place.handover?.destination ?? "") + "/" + file)
                #expect(content == Self.content, "killed at operation \(number)")
            }
        }
        #expect(KillableServer.areEnough(kills, of: numbers), "\(kills) kills at \(numbers) of \(count) operations")
    }

    @Test(
        "on an ordinary route the origin is called at most once, and the client gets its response or a final 502",
        arguments: handovers)
    func ordinary(isByPath: Bool) throws {
        try kill("", byPath: isByPath) { place, response, callsBefore in
            let calls = place.origin.requests.count
            #expect(calls <= 1)
            if response.status == 201 {
                #expect(calls == 1)
                Fixture.expectAnswer(response, .v8, isLive: callsBefore == 0)
            } else {
                Fixture.expectUnknown(response)
                #expect(calls == callsBefore)
            }
        }
    }

    @Test(
        "on a repeatable route the client gets the response, and all calls have the same key", arguments: handovers)
    func repeatable(isByPath: Bool) throws {
        try kill(",repeat=safe", byPath: isByPath) { place, response, callsBefore in
            let calls = place.origin.requests.count
            #expect(1...2 ~= calls)
            Fixture.expectAnswer(response, .v8, isLive: calls > callsBefore)
            #expect(Set(place.origin.requests.map { $0.fields["Idempotency-Key"] }).count == 1)
            #expect(place.origin.requests.allSatisfy { $0.fields.contains("Idempotency-Key") })
        }
    }
}
