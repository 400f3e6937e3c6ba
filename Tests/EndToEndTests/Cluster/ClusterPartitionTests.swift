import ConformanceKit
import Glibc
import TestSupport
import Testing

/// Tests with a proxy between each server and the database, and between each server and the storage.
@Suite(
    "Servers that cannot reach the database or the storage", .blocking, .serialized,
    .enabled(if: Cluster.isPossible, "\(Cluster.requirement)"))
struct ClusterPartitionTests {
    enum Place: CaseIterable {
        case database, storage, both

        func set(_ network: FaultProxy.Network, _ link: Cluster.Link) {
            if self != .storage { link.database.set(network) }
            if self != .database { link.storage.set(network) }
        }
    }

    private static let isLong = getenv("ONWARD_SCALE") != nil
    private static let content = BytePool.repeated(0..<20_000_000)
    private static let stalled = FaultProxy.Network.stalled([.toServer, .toClient])

    private static func storageError(_ status: String, _ code: String) -> FaultProxy.Network {
        let document = "<?xml version=\"1.0\"?><Error><Code>\(code)</Code><Message>test</Message></Error>"
        return .responding(
            "HTTP/1.1 \(status)\r\nContent-Type: application/xml\r\nContent-Length: \(document.utf8.count)\r\n"
                + "Connection: close\r\n\r\n" + document)
    }

    private static let features = Cluster.Features(hasLinks: true)

    private func append(
        _ node: ServerProcess, _ location: String, _ range: Range<Int>, of count: Int = Self.content.count
    ) throws -> Response {
        try node.exchange(
            .append(
                .v8, location, at: range.lowerBound, complete: range.upperBound == count,
                .bytes(Array(Self.content[range]))))
    }

    /// Expects that the server cannot serve a request now: 503 with Retry-After, or the end of the connection.
    private func expectUnavailable(
        _ sourceLocation: SourceLocation = #_sourceLocation, _ exchange: () throws -> Response
    ) {
        guard let response = try? exchange() else { return }
        #expect(response.status == 503, "\(response)", sourceLocation: sourceLocation)
        #expect(response.fields["Retry-After"] != nil, "\(response)", sourceLocation: sourceLocation)
    }

    /// Expects that the server responds that it cannot serve a request now.
    private func expectRetryAfter(
        _ sourceLocation: SourceLocation = #_sourceLocation, _ exchange: () throws -> Response
    ) rethrows {
        let response = try exchange()
        #expect(response.status == 503, "\(response)", sourceLocation: sourceLocation)
        #expect(response.fields["Retry-After"] != nil, "\(response)", sourceLocation: sourceLocation)
    }

    /// Waits until a server knows the offset of an upload, and returns the offset.
    private func awaitOffset(_ node: ServerProcess, _ location: String) throws -> Int {
        let offset: Int64? = try pollUntil(within: .seconds(90)) {
            let response = try node.retrieve(location)
            guard response.status == 503 else { return response.offset }
            #expect(response.fields["Retry-After"] != nil, "\(response)")
            return nil
        }
        guard let offset else { throw TestFailure("the upload is not available at another server") }
        return Int(offset)
    }

    @Test(
        "an upload of a server that cannot reach the others continues at another server, and nothing that the first one still receives counts",
        arguments: isLong ? Place.allCases : [.both], isLong ? [stalled, .cut] : [stalled])
    func partition(_ place: Place, _ network: FaultProxy.Network) throws {
        try withCluster(2, ["--idle-timeout", "1h"], Self.features) { cluster in
            let (first, second, link) = (cluster.nodes[0], cluster.nodes[1], cluster.links[0])
            let stuck = try first.connect()
            let size = Self.content.count
            try stuck.send(.creation(.v8, "PUT", "/files/p", complete: true, .declared(Int64(size))))
            let location = try #require(try stuck.requireInterim().location)
            var (sent, reported) = (0, 0)
            while reported == 0, sent < 15_000_000 {
                try stuck.send(Self.content[sent..<sent + 500_000])
                sent += 500_000
                if !stuck.staysSilent(for: .milliseconds(300)) {
                    reported = Int(try stuck.requireInterim().offset ?? 0)
                }
            }
            #expect(reported > 0)
            place.set(network, link)
            let start = ContinuousClock.now
            try first.awaitUnreadiness()
            print("\(place), \(network): not ready after \(ContinuousClock.now - start)")
            #expect(try first.exchange(.get("/healthz")).status == 200)
            // The content is so long that it is not only in the row.
            expectUnavailable {
                try first.exchange(
                    Request("PUT", "/files/other", [], .bytes(Array(Self.content[..<300_000]))), within: .seconds(90))
            }
            let request = ContinuousClock.now
            let offset = try awaitOffset(second, location)
            print("\(place), \(network): another server continues after \(ContinuousClock.now - start)")
            // The first server may still try to store bytes.
            if place == .storage { #expect(ContinuousClock.now - request < .seconds(25)) }
            #expect(offset >= reported)
            #expect(try append(second, location, offset..<size - 1).offset == Int64(size - 1))
            place.set(.open, link)
            try first.awaitReadiness()
            _ = stuck.sendUntilRefused([UInt8](repeating: 0xEE, count: size), within: .seconds(5))
            #expect(try awaitOffset(first, location) == size - 1)
            #expect(try append(first, location, size - 1..<size).status == 201)
            for node in cluster.nodes {
                #expect(areEqual(try node.exchange(.get("/files/p")).content, Self.content))
                #expect(try node.exchange(.get("/files/other")).status == 404)
            }
        }
    }

    @Test(
        "while the storage fails, an upload gets 503 and keeps its offset, and it continues when the storage works again",
        arguments: isLong
            ? [
                storageError("503 Slow Down", "SlowDown"), storageError("500 Internal Server Error", "InternalError"),
                stalled, .cut, .losingResponses(oneIn: 1),
            ] : [storageError("503 Slow Down", "SlowDown")])
    func storageFaults(_ network: FaultProxy.Network) throws {
        try withCluster(1, [], Self.features) { cluster in
            try expectContinuation(cluster, .storage, network)
        }
    }

    @Test(
        "while the database fails, an upload gets 503 and keeps its offset, and it continues when the database works again",
        arguments: isLong ? [stalled, .stalled([.toClient]), .cut, .losingResponses(oneIn: 1)] : [stalled])
    func databaseFaults(_ network: FaultProxy.Network) throws {
        try withCluster(1, [], Self.features) { cluster in
            try expectContinuation(cluster, .database, network)
        }
    }

    private func expectContinuation(_ cluster: Cluster, _ place: Place, _ network: FaultProxy.Network) throws {
        let (node, link) = (cluster.nodes[0], cluster.links[0])
        let location = try node.begin(
            .v8, "/files/s", Array(Self.content[..<1_000_000]), length: Self.content.count)
        place.set(network, link)
        let start = ContinuousClock.now
        if place == .storage {
            try expectRetryAfter { try append(node, location, 1_000_000..<9_000_000) }
        } else {
            expectUnavailable { try append(node, location, 1_000_000..<9_000_000) }
        }
        print("\(place), \(network): the upload ends after \(ContinuousClock.now - start)")
        try node.awaitUnreadiness()
        #expect(try node.exchange(.get("/healthz")).status == 200)
        place.set(.open, link)
        try node.awaitReadiness()
        let offset = try awaitOffset(node, location)
        #expect(offset >= 1_000_000)
        #expect(try append(node, location, offset..<Self.content.count).status == 201)
        #expect(areEqual(try node.exchange(.get("/files/s")).content, Self.content))
    }

    @Test("while the database fails, a request for an upload of an open route gets 503, not 401")
    func openRoute() throws {
        let directory = try TemporaryDirectory()
        try TokenFixture.write("alice alice-secret-token-0123456789", to: directory.path + "/tokens")
        let origin = try ScriptedServer.origin(GatewayUploadFixture.accept)
        let options = ["--token-file", directory.path + "/tokens", "--route", "/app=\(origin.url),access=open"]
        try withCluster(1, options, Self.features) { cluster in
            let (node, proxy) = (cluster.nodes[0], cluster.links[0].database)
            let location = try node.begin(.v8, "/app/x", [1, 2, 3], length: 5)
            proxy.set(.cut)
            try expectRetryAfter { try node.exchange(.retrieval(.v8, location)) }
            try expectRetryAfter { try append(node, location, 3..<5, of: 5) }
            proxy.set(.open)
            try node.awaitReadiness()
            #expect(try awaitOffset(node, location) == 3)
            #expect(try append(node, location, 3..<5, of: 5).status == 201)
            // Without the upload the same request needs a token.
            #expect(try node.exchange(.retrieval(.v8, location + "x")).status == 401)
        }
    }

    @Test("the bytes of a client that pauses become durable within seconds")
    func pausingClient() throws {
        try withCluster(1, ["--idle-timeout", "1h"]) { cluster in
            let connection = try cluster.nodes[0].connect()
            try connection.send(.creation(.v8, "PUT", "/files/s", complete: true, .declared(Int64(Self.content.count))))
            for end in [3_000_000, 3_000_100] {
                try connection.send(Self.content[(end == 3_000_000 ? 0 : 3_000_000)..<end])
                #expect(
                    try eventually { try cluster.database.query("SELECT \"offset\" FROM onward.upload") == ["\(end)"] })
            }
        }
    }

    @Test("a client that sends nothing while the storage fails gets 503")
    func silentClient() throws {
        try withCluster(1, ["--idle-timeout", "1h"], Self.features) { cluster in
            let (node, proxy) = (cluster.nodes[0], cluster.links[0].storage)
            let connection = try node.connect()
            try connection.send(.creation(.v8, "PUT", "/files/s", complete: true, .declared(Int64(Self.content.count))))
            let location = try #require(try connection.requireInterim().location)
            proxy.set(Self.storageError("503 Slow Down", "SlowDown"))
            // More than 8 MiB, so that the server stores an object immediately.
            try connection.send(Self.content[..<9_000_000])
            try expectRetryAfter { try connection.readResponse(to: "PUT", within: .seconds(90)) }
            proxy.set(.open)
            try node.awaitReadiness()
            let offset = try awaitOffset(node, location)
            #expect(try append(node, location, offset..<Self.content.count).status == 201)
            #expect(areEqual(try node.exchange(.get("/files/s")).content, Self.content))
        }
    }

    @Test(
        "a storage that refuses requests is an internal error, and one that is overloaded is not, even before the first object"
    )
    func refusal() throws {
        try withCluster(1, [], Self.features) { cluster in
            let (node, proxy) = (cluster.nodes[0], cluster.links[0].storage)
            let request = Request("PUT", "/files/r", [], .bytes(Array(Self.content[..<300_000])))
            for expected in [[201], [200, 204]] {
                proxy.set(Self.storageError("403 Forbidden", "AccessDenied"))
                #expect(try node.exchange(request).status == 500)
                proxy.set(Self.storageError("503 Slow Down", "SlowDown"))
                try expectRetryAfter { try node.exchange(request, within: .seconds(90)) }
                proxy.set(.open)
                try node.awaitReadiness()
                #expect(expected.contains(try node.exchange(request).status))
            }
        }
    }

    @Test("a client gets the URL of a short upload only when every server can find the upload")
    func announcement() throws {
        try withCluster(2, [], Self.features) { cluster in
            let (first, second, proxy) = (cluster.nodes[0], cluster.nodes[1], cluster.links[0].storage)
            // Too many bytes for the row, so that the server also stores an object.
            let content = Array(Self.content[..<70_000])
            proxy.set(Self.stalled)
            let connection = try first.connect()
            try connection.send(.creation(.v8, "PUT", "/files/s", complete: true, .bytes(content)))
            // Usually all content has arrived at once, and the server sends nothing. If the content is late, the upload has
            // a row.
            if !connection.staysSilent(for: .seconds(1)) {
                let location = try #require(try connection.requireInterim().location)
                #expect([204, 503].contains(try second.retrieve(location).status))
            }
            proxy.set(.open)
            let response = try connection.readResponse(to: "PUT", within: .seconds(60))
            #expect(response.status == 201, "\(response)")
            let location = try #require(response.interim.compactMap(\.location).first)
            let retrieved = try second.retrieve(location)
            #expect(retrieved.status == 204 && retrieved.complete == true, "\(retrieved)")
        }
    }

    @Test("a short failure of the storage only delays an upload")
    func shortFault() throws {
        try withCluster(1, [], Self.features) { cluster in
            let (node, proxy) = (cluster.nodes[0], cluster.links[0].storage)
            // The server tries again for ten seconds. On a busy machine the failure can last longer; then it is repeated.
            let isShort = try (1...5).contains { round in
                let connection = try node.connect()
                try connection.send(Request("PUT", "/files/\(round)", [], .declared(Int64(Self.content.count))))
                try connection.send(Self.content[..<10_000_000])
                let (connections, start) = (proxy.connections, ContinuousClock.now)
                proxy.set(Self.storageError("503 Slow Down", "SlowDown"))
                try connection.send(Self.content[10_000_000...])
                // The server tries again with a new connection each time.
                #expect(pollUntil(within: .seconds(30)) { proxy.connections >= connections + 3 ? () : nil } != nil)
                proxy.set(.open)
                let time = ContinuousClock.now - start
                let response = try connection.readResponse(to: "PUT")
                guard time < .seconds(5) else { return false }
                #expect(response.status == 201, "after \(time): \(response)")
                #expect(areEqual(try node.exchange(.get("/files/\(round)")).content, Self.content))
                return true
            }
            #expect(isShort)
        }
    }

    @Test(
        "while a hundred uploads wait for a storage that does not respond, the watchdog reports it, and no stuck server",
        .enabled(if: isLong, "takes a minute: make test-scale runs it"))
    func watchdog() throws {
        let directory = try TemporaryDirectory()
        let manager = try ManagerSocket(directory.path + "/notify")
        let environment = ["NOTIFY_SOCKET": manager.address, "WATCHDOG_USEC": "20000000"]
        let features = Cluster.Features(hasLinks: true, environment: { _ in environment })
        try withCluster(1, ["--idle-timeout", "1h"], features) { cluster in
            let (node, proxy) = (cluster.nodes[0], cluster.links[0].storage)
            let connections = try (0..<100).map { number in
                let connection = try node.connect()
                try connection.send(.creation(.v8, "PUT", "/files/\(number)", complete: true, .declared(1_000_000)))
                _ = try connection.requireInterim()
                return connection
            }
            proxy.set(Self.stalled)
            for connection in connections { try connection.send(Self.content[..<200_000]) }
            try node.awaitUnreadiness()
            manager.receiveAll()
            for _ in 0..<4 {
                let message = try manager.await("WATCHDOG", "1", within: .seconds(60))
                #expect(message["STATUS"]?.contains("nothing can be stored") == true, "\(message)")
            }
            #expect(!node.log.contains("the server is stuck"))
            proxy.set(.open)
            try node.awaitReadiness()
        }
    }
}
