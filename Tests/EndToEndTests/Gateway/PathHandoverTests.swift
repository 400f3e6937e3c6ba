import ConformanceKit
import FoundationEssentials
import Glibc
import HTTPSemantics
import SystemCalls
import TestSupport
import Testing

/// A complete upload whose request has the path of a file in place of the content.
@Suite("Gateway: hand-over by path", .blocking)
struct GatewayPathHandoverTests {
    private typealias Fixture = GatewayUploadFixture
    private static let content = GatewayUploadFixture.content

    // MARK: The request and the file

    @Test(
        "the origin gets the metadata and the path of a file with the content, which is removed after the response",
        arguments: GatewayUploadFixture.versions)
    func request(version: Interop?) throws {
        let place = try PathHandover()
        let origin = try ScriptedServer.origin { request, connection in
            #expect(PathHandover.content(try place.file(of: request)) == Self.content)
            try Fixture.accept(request, connection)
        }
        try place.withGateway(to: origin) { server in
            var request = Request.creation(version, "POST", Fixture.target, complete: true, .bytes(Self.content))
            request.fields += Fixture.fields + Fixture.unforwarded
            request.fields += [
                ("Onward-Path", "/etc/passwd"), ("onward-path", "/etc/shadow"), ("Onward_Path", "/etc/group"),
                ("Onward-Length", "1"), ("Repr-Digest", Self.content.digestField()),
            ]
            Fixture.expectAnswer(try server.exchange(request), version, isCreation: true)
            #expect(origin.requests.first?.fields.values("Onward-Digest") == [Self.content.digestField()])
            try PathHandover.expectRequest(origin.requests.first, length: Self.content.count)
            place.expectNothingLeft(server)

            let location = try Fixture.begin(server, version, Array(Self.content[..<10_000]))
            let last = try server.exchange(
                .append(version, location, at: 10_000, complete: true, .bytes(Array(Self.content[10_000...]))))
            Fixture.expectAnswer(last, version)
            try PathHandover.expectRequest(origin.requests.last, length: Self.content.count)
            let paths = Set(origin.requests.map { $0.fields["Onward-Path"] })
            #expect(paths.count == 2 && origin.malformed.isEmpty)
            place.expectNothingLeft(server)
        }
    }

    @Test("every method, with and without content", arguments: ["POST", "PUT", "PATCH"], [0, 1, 300_000])
    func methods(method: String, length: Int) throws {
        let place = try PathHandover()
        let content = Payload.bytes(length)
        let origin = try ScriptedServer.origin { request, connection in
            #expect(PathHandover.content(try place.file(of: request)) == content)
            try Fixture.accept(request, connection)
        }
        try place.withGateway(to: origin) { server in
            var request = Request.creation(.v8, method, Fixture.target, complete: true, .bytes(content))
            request.fields += Fixture.fields
            #expect(try server.exchange(request).status == 201)
            try PathHandover.expectRequest(origin.requests.first, length: length)
            #expect(origin.requests.count == 1 && origin.requests.first?.method == method)
            place.expectNothingLeft(server)
        }
    }

    @Test("a request that is not a resumable upload has its content, and no path")
    func plain() throws {
        let place = try PathHandover()
        let origin = try ScriptedServer.origin(Fixture.accept)
        try place.withGateway(to: origin) { server in
            let request = Request(
                "POST", "/app/x", [("Onward-Path", "/etc/passwd"), ("Onward_Path", "/etc/shadow")],
                .bytes(Self.content))
            let response = try server.exchange(request)
            #expect(response.status == 201)
            #expect(origin.requests.first?.content == Self.content)
            #expect(origin.requests.first?.text.lowercased().contains("path") == false)
        }
    }

    @Test("the origin moves the file away: no byte is copied, and the file has one name")
    func moved() throws {
        let place = try PathHandover()
        let size = 200 << 20
        let content = Payload.bytes(1 << 20)
        let inode = Monitor<UInt64>(0)
        let origin = try ScriptedServer.origin { request, connection in
            let file = try place.file(of: request)
            inode.withLock { $0 = PathHandover.status(file)?.inode ?? 0 }
            try place.move(request)
            try connection.respond()
        }
        try place.withGateway(to: origin) { server in
            let location = try Fixture.begin(server, .v8, [], fields: [])
            let client = try server.connect()
            try client.send(.append(.v8, location, at: 0, complete: false, .declared(Int64(size))))
            for _ in 0..<200 { try client.send(content[...]) }
            #expect(try client.readResponse().status == 204)
            let stored = try #require(PathHandover.entries(server.root + "/uploads").first)
            let before = try #require(PathHandover.status(server.root + "/uploads/" + stored))
            let response = try Fixture.complete(server, location, at: size)
            #expect(response.status == 200, "\(response)")
            let file = try #require(PathHandover.status(place.destination + "/0"))
            #expect(file.inode == before.inode && inode.withLock { $0 } == before.inode)
            #expect(file.links == 1 && file.mode == 0o444)
            let handle = try FileDescriptor.open(place.destination + "/0", [.readOnly])
            #expect(try handle.status().size == Int64(size))
            var last = [UInt8](repeating: 0, count: content.count)
            _ = try last.withUnsafeMutableBytes { try handle.read(into: $0, at: Int64(size - content.count)) }
            #expect(last == content)
            place.expectNothingLeft(server)
            try Fixture.expectFinal(server, origin, location, length: size) { #expect($0.status == 200) }
        }
    }

    @Test("no descriptor of the server can write to the file when the origin gets its path", arguments: [false, true])
    func noWriter(isRepeated: Bool) throws {
        let place = try PathHandover()
        let server = Monitor<Int32>(0)
        let writers = Monitor<[Int]>([])
        let calls = Counter()
        let origin = try ScriptedServer.origin { request, connection in
            let inode = PathHandover.status(try place.file(of: request))?.inode
            let found = Self.writers(of: try #require(inode), process: server.withLock { $0 })
            writers.withLock { $0.append(found) }
            if isRepeated, calls.next() == 1 { connection.reset() } else { try Fixture.accept(request, connection) }
        }
        try place.withGateway(to: origin, "repeat=safe") { process in
            server.withLock { $0 = process.process.identifier }
            let location = try Fixture.begin(process, .v8, Array(Self.content[..<50_000]))
            let completion = Request.append(
                .v8, location, at: 50_000, complete: true, .bytes(Array(Self.content[50_000...])))
            var response = try process.exchange(completion)
            if isRepeated {
                Fixture.expectUnavailable(response)
                try process.restart()
                server.withLock { $0 = process.process.identifier }
                response = try Fixture.complete(process, location)
            }
            Fixture.expectAnswer(response, .v8)
            #expect(writers.withLock { $0 } == (isRepeated ? [0, 0] : [0]))
        }
    }

    /// The number of descriptors of a process that can write to a file.
    private static func writers(of inode: UInt64, process: Int32) -> Int {
        PathHandover.entries("/proc/\(process)/fd").count { number in
            var status = stat()
            guard stat("/proc/\(process)/fd/\(number)", &status) == 0, UInt64(status.st_ino) == inode,
                let info = PathHandover.content("/proc/\(process)/fdinfo/\(number)"),
                let line = String(decoding: info, as: UTF8.self).split(separator: "\n").first(where: {
                    $0.hasPrefix("flags:")
                }), let flags = line.split(separator: "\t").last.flatMap({ Int32($0, radix: 8) })
            else { return false }
            return flags & O_ACCMODE != O_RDONLY
        }
    }

    // MARK: The effect

    @Test(
        "503 from an origin that has not moved the file: the request is repeated with another path, and the old path is gone"
    )
    func unavailable() throws {
        let place = try PathHandover()
        let calls = Counter()
        let origin = try ScriptedServer.origin { request, connection in
            #expect(PathHandover.content(try place.file(of: request)) == Self.content)
            #expect(place.names.count == 1)
            if calls.next() <= 2 { try connection.respond("503 Wait") } else { try Fixture.accept(request, connection) }
        }
        try place.withGateway(to: origin, "retry=60s") { server in
            let location = try Fixture.begin(server)
            Fixture.expectAnswer(try Fixture.complete(server, location), .v8)
            #expect(Set(origin.requests.map { $0.fields["Onward-Path"] }).count == 3)
            place.expectNothingLeft(server)
        }
    }

    @Test("an origin that is down: while the upload waits, no file is in the directory")
    func down() throws {
        let place = try PathHandover()
        let origin = try ScriptedServer.origin(place.moveAndAccept)
        origin.stop()
        try place.withGateway(to: origin, "retry=0s") { server in
            let location = try Fixture.begin(server)
            for _ in 0..<2 {
                Fixture.expectUnavailable(try Fixture.complete(server, location))
                #expect(place.names.isEmpty)
                try server.restart()
                try Fixture.expectWaiting(server, location)
            }
            try origin.restart()
            Fixture.expectAnswer(try Fixture.complete(server, location), .v8)
            #expect(origin.requests.count == 1)
            #expect(PathHandover.content(place.destination + "/0") == Self.content)
            place.expectNothingLeft(server)
        }
    }

    /// The action of an origin after it has moved the file.
    enum End: String, CaseIterable, Sendable {
        case cut, unavailable, stalls

        func perform(_ connection: Reply) throws {
            switch self {
            case .cut: connection.close()
            case .unavailable: try connection.respond("503 Wait")
            case .stalls: _ = connection.awaitClosing(within: .seconds(60))
            }
        }
    }

    @Test(
        "the file is moved and the response is lost, or is 503: the outcome is unknown, and nothing is sent again",
        arguments: End.allCases)
    func moved(end: End) throws {
        let place = try PathHandover()
        let origin = try ScriptedServer.origin { request, connection in
            try place.move(request)
            try end.perform(connection)
        }
        try place.withGateway(to: origin, "retry=60s", "timeout=1s") { server in
            let location = try Fixture.begin(server)
            Fixture.expectUnknown(try Fixture.complete(server, location))
            try Fixture.expectFinal(server, origin, location) { Fixture.expectUnknown($0) }
            #expect(origin.requests.count == 1)
            #expect(PathHandover.content(place.destination + "/0") == Self.content)
            // The operator can still send the request again.
            #expect(PathHandover.entries(server.root + "/retained").count == 2)
            place.expectNothingLeft(server)
        }
    }

    @Test(
        "on a repeatable route such a request is sent again, with the same key, another path and the same content",
        arguments: End.allCases)
    func movedAndRepeated(end: End) throws {
        let place = try PathHandover()
        let calls = Counter()
        let origin = try ScriptedServer.origin { request, connection in
            try place.move(request)
            if calls.next() == 1 { try end.perform(connection) } else { try Fixture.accept(request, connection) }
        }
        try place.withGateway(to: origin, "repeat=safe", "retry=60s", "timeout=1s") { server in
            let location = try Fixture.begin(server)
            Fixture.expectUnavailable(try Fixture.complete(server, location))
            try Fixture.expectWaiting(server, location)
            #expect(origin.requests.count == 1 && place.names.isEmpty)
            Fixture.expectAnswer(try Fixture.complete(server, location), .v8)
            #expect(origin.requests.count == 2)
            #expect(Set(origin.requests.map { $0.fields["Idempotency-Key"] }).count == 1)
            #expect(Set(origin.requests.map { $0.fields["Onward-Path"] }).count == 2)
            for file in place.movedFiles {
                #expect(PathHandover.content(place.destination + "/" + file) == Self.content)
            }
            #expect(place.movedFiles.count == 2)
            place.expectNothingLeft(server)
        }
    }

    @Test("any other response is final, whether the file was moved or not", arguments: [false, true])
    func failed(isMoved: Bool) throws {
        let place = try PathHandover()
        let origin = try ScriptedServer.origin { request, connection in
            if isMoved { try place.move(request) }
            try connection.respond("500 Broken")
        }
        try place.withGateway(to: origin) { server in
            let location = try Fixture.begin(server)
            #expect(try Fixture.complete(server, location).status == 500)
            try Fixture.expectFinal(server, origin, location) { #expect($0.status == 500) }
            #expect(place.movedFiles.count == (isMoved ? 1 : 0))
            place.expectNothingLeft(server)
        }
    }

    @Test(
        "the server is killed while the origin has the path: the file is removed at the next start",
        arguments: [false, true], [false, true])
    func killed(isMoved: Bool, isRepeatable: Bool) throws {
        let place = try PathHandover()
        let hold = Hold()
        let origin = try ScriptedServer.origin { request, connection in
            if isMoved { try place.move(request) }
            hold.wait()
            try Fixture.accept(request, connection)
        }
        try place.withGateway(to: origin, isRepeatable ? "repeat=safe" : "retry=0s") { server in
            let location = try Fixture.begin(server)
            let client = try server.connect()
            try client.send(.append(.v8, location, at: Self.content.count, complete: true, .bytes([])))
            #expect(origin.awaitRequests(1))
            if isMoved { #expect(pollUntil(within: .seconds(30)) { place.movedFiles.isEmpty ? nil : true } == true) }
            try server.crash()
            #expect(place.names.count == 1)
            hold.release()
            try server.restart()
            #expect(place.names.isEmpty)
            if isRepeatable {
                try Fixture.expectWaiting(server, location)
                Fixture.expectAnswer(try Fixture.complete(server, location), .v8)
                #expect(origin.requests.count == 2)
            } else {
                try Fixture.expectFinal(server, origin, location) { Fixture.expectUnknown($0) }
                #expect(origin.requests.count == 1)
            }
            place.expectNothingLeft(server)
        }
    }

    @Test("an operator sends a request again: the origin gets a path again, and its response ends the request")
    func resend() throws {
        let place = try PathHandover()
        let ends = Monitor<[End]>([.cut, .unavailable, .cut])
        let origin = try ScriptedServer.origin { request, connection in
            #expect(PathHandover.content(try place.file(of: request)) == Self.content)
            try place.move(request)
            if let end = ends.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) { return try end.perform(connection) }
            try Fixture.accept(request, connection)
        }
        try place.withGateway(to: origin) { server in
            let location = try Fixture.begin(server)
            Fixture.expectUnknown(try Fixture.complete(server, location))
            let upload = try #require(origin.requests.first?.fields["Onward-Upload"])
            func outcomes(_ words: String...) throws -> ChildProcess.Ending {
                let process = try ChildProcess(
                    try ExecutableLocation.onward(), ["outcomes"] + words + ["--root", server.root])
                return try process.awaitEnding()
            }
            for count in 2...3 {
                #expect(try outcomes("resend", upload) == .exited(69))
                #expect(origin.requests.count == count && place.names.isEmpty)
                #expect(PathHandover.entries(server.root + "/retained").count == 2)
            }
            #expect(try outcomes("resend", upload) == .exited(0))
            for request in origin.requests.dropFirst() {
                try PathHandover.expectRequest(
                    request, length: Self.content.count, added: ["host", "content-length", "onward-upload"])
            }
            #expect(Set(origin.requests.map { $0.fields["Onward-Path"] }).count == 4)
            #expect(place.movedFiles.count == 4)
            #expect(PathHandover.entries(server.root + "/retained").isEmpty)
            #expect(try outcomes("resend", upload) == .exited(66))
            place.expectNothingLeft(server)
        }
    }

    @Test("a file that a request of an operator uses is not removed when the server starts")
    func resendDuringStart() throws {
        let place = try PathHandover()
        let hold = Hold()
        let calls = Counter()
        let origin = try ScriptedServer.origin { request, connection in
            if calls.next() == 1 { return connection.close() }
            hold.wait()
            try place.move(request)
            try Fixture.accept(request, connection)
        }
        try place.withGateway(to: origin) { server in
            let location = try Fixture.begin(server)
            Fixture.expectUnknown(try Fixture.complete(server, location))
            let upload = try #require(origin.requests.first?.fields["Onward-Upload"])
            let operation = try ChildProcess(
                try ExecutableLocation.onward(), ["outcomes", "resend", upload, "--root", server.root])
            #expect(origin.awaitRequests(2))
            try server.restart()
            #expect(place.names.count == 1)
            hold.release()
            #expect(try operation.awaitEnding() == .exited(0))
            #expect(PathHandover.content(place.destination + "/0") == Self.content)
            place.expectNothingLeft(server)
        }
    }
}
