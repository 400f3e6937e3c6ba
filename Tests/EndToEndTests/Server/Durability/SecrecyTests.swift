import ConformanceKit
import FoundationEssentials
import TestSupport
import Testing

@Suite("Stored parts of requests", .blocking)
struct SecrecyTests {
    /// Unique values, each with the place in which it was sent.
    private struct Secrets {
        private var generator = SeededGenerator.part(41)
        private(set) var values: [(place: String, value: String)] = []

        mutating func make(_ place: String) -> String {
            let value = "s3cret" + (0..<3).map { _ in String(generator.next(), radix: 36) }.joined()
            values.append((place, value))
            return value
        }

        /// A value for a pair of `Upload-Metadata`; its length makes the value valid Base64.
        mutating func makePairValue(_ place: String) -> String {
            var value = make(place)
            value.removeLast(value.count % 4)
            values[values.count - 1].value = value
            return value
        }
    }

    /// Fields that no upload needs; some have random names.
    private static func fields(_ secrets: inout Secrets, _ request: String) -> [(String, String)] {
        var generator = SeededGenerator.part(secrets.values.count)
        let random = (0..<3).map { _ in "X-" + String(generator.next(), radix: 36) }
        let names = [
            "Cookie", "Proxy-Authorization", "X-Api-Key", "X-Auth-Token", "X-Amz-Security-Token", "X-CSRF-Token",
            "Referer", "User-Agent", "From", "Accept-Language", "Traceparent",
        ]
        let metadata = "filename YS5iaW4=,token \(secrets.makePairValue("Upload-Metadata of \(request)")),type YS9i"
        return (names + random).map { ($0, secrets.make("\($0) of \(request)")) } + [("Upload-Metadata", metadata)]
    }

    private func expectNone(_ secrets: Secrets, _ server: ServerProcess, _ moment: String) {
        let stored = StoredBytes(of: server)
        for (place, value) in secrets.values {
            let places = stored.places(of: value)
            #expect(places.isEmpty, "\(moment): \(place) is in \(places)")
        }
    }

    @Test("SEC-15: no secret of any request reaches the database, its write-ahead log, uploads/ or the access log")
    func secrets() throws {
        print("SecrecyTests: ONWARD_SEED=\(SeededGenerator.runSeed)")
        var secrets = Secrets()
        let token = secrets.make("the token")
        let fixture = try TokenFixture("anna \(token)", "--keep-completed", "1h")
        let server = fixture.server
        func send(_ request: Request, _ name: String, query: Bool = true) throws -> Response {
            var request = request.with(token: token)
            request.fields += Self.fields(&secrets, name)
            if query { request.target += "?signature=" + secrets.make("query of \(name)") }
            return try server.exchange(request)
        }
        var unfinished: [(Interop, String)] = []
        for version in Interop.allCases {
            let name = "/files/v\(version.rawValue)"
            let begun = try send(.creation(version, "PUT", name, complete: false, .bytes([1, 2, 3])), "creation")
            #expect(begun.status == 201, "\(begun)")
            unfinished.append((version, try #require(begun.location)))
            let entire = try send(.creation(version, "POST", "/files/", complete: true, .bytes([4])), "entire creation")
            #expect(entire.status == 201, "\(entire)")
            let canceled = try send(
                .creation(version, "PUT", "/files/c", complete: false, .bytes([1])), "canceled creation")
            let location = try #require(canceled.location)
            #expect(try send(.cancellation(version, location), "cancellation").status == 204)
            let refused = try send(
                .creation(version, "PUT", name, complete: true, .bytes([1])).with("If-Match", "\"none\""),
                "refused creation")
            #expect(refused.status == 412, "\(refused)")
        }
        // This `Upload-Metadata` is malformed, because a key occurs twice.
        let pair = "key " + secrets.makePairValue("malformed Upload-Metadata")
        let malformed = try server.exchange(
            .creation(.v8, "POST", "/files/", complete: false, .bytes([1])).with(token: token)
                .with("Upload-Metadata", "filename YS5iaW4=,\(pair),\(pair)"))
        #expect(malformed.status == 201, "\(malformed)")
        let mismatched = Request.creation(.v8, "PUT", "/files/m", complete: true, .bytes([1]))
            .with("Repr-Digest", [2].digestField())
        #expect(try send(mismatched, "mismatch").status == 400)
        #expect(try send(Request("PUT", "/files/plain", [], .bytes([5])), "plain upload").status == 201)
        #expect(try send(.get("/files/plain"), "download").status == 200)
        #expect(try send(Request("DELETE", "/files/plain"), "removal").status == 204)
        expectNone(secrets, server, "with unfinished uploads")

        try server.crash()
        expectNone(secrets, server, "after a crash")
        try server.restart()
        for (version, location) in unfinished {
            #expect(try send(.retrieval(version, location), "retrieval").offset == 3)
            let last = try send(.append(version, location, at: 3, complete: true, .bytes([7])), "append", query: false)
            #expect(last.status == 201, "\(last)")
        }
        expectNone(secrets, server, "with finished uploads")
        _ = try server.stop()
        expectNone(secrets, server, "after a clean stop")
    }

    @Test("name and type of Upload-Metadata survive a crash")
    func metadata() throws {
        try withServer { server in
            // a.bin and image/png
            let begun = try server.exchange(
                .creation(.v8, "POST", "/files/", complete: false, .bytes([1]))
                    .with("Upload-Metadata", "x YQ==,name YS5iaW4=,type aW1hZ2UvcG5n"))
            let location = try #require(begun.location)
            try server.crash()
            try server.restart()
            let last = try server.exchange(.append(.v8, location, at: 1, complete: true, .bytes([2])))
            #expect(last.status == 201 && last.location?.hasSuffix("/files/a.bin") == true, "\(last)")
            #expect(try server.exchange(.get("/files/a.bin")).fields["Content-Type"] == "image/png")
        }
    }

    @Test("the fields for the target are stored until the upload is complete or invalid, and no longer")
    func neededFields() throws {
        try withServer("--max-size", "1000", "--keep-completed", "1h") { server in
            let marks = ["kept1", "kept2"].map { $0 + "-" + String(SeededGenerator.runSeed, radix: 36) }
            let locations = try marks.map { mark in
                try server.begin(
                    .v8, "/files/\(mark.prefix(5))", [1, 2, 3],
                    [("Content-Disposition", "attachment; filename=\"a.txt\"; x=\(mark)")])
            }
            for mark in marks { #expect(!StoredBytes(of: server).places(of: mark).isEmpty) }
            let last = try server.exchange(.append(.v8, locations[0], at: 3, complete: true, .bytes([4])))
            #expect(last.status == 201, "\(last)")
            // This makes the upload invalid.
            let long = try server.exchange(
                .append(.v8, locations[1], at: 3, complete: true, .chunks([[UInt8](repeating: 1, count: 2000)])))
            #expect(long.status == 413, "\(long)")
            #expect(try server.stop() == .exited(0))
            for mark in marks { #expect(StoredBytes(of: server).places(of: mark) == []) }
            #expect(server.published("kept1") == [1, 2, 3, 4])
            try server.restart()
            let again = try server.exchange(.append(.v8, locations[0], at: 4, complete: true, .bytes([])))
            #expect(again.status == 201 && again.location == last.location, "\(again)")
        }
    }

    @Test(
        "a creation whose stored fields exceed the limit gets 431, which names the limit, before it sends content",
        arguments: [true, false])
    func bound(_ isUpload: Bool) throws {
        try withServer { server in
            func put(_ size: Int) throws -> Response {
                let value = "attachment; x=" + String(repeating: "y", count: size)
                var request = Request("PUT", "/files/a", [("Content-Disposition", value)], .bytes([1]))
                if isUpload {
                    request = .creation(.v8, "PUT", "/files/a", complete: true, .bytes([1]))
                    request.fields.append(("Content-Disposition", value))
                }
                return try server.exchange(request)
            }
            #expect(try put(15_000).status == 201)
            let refused = try put(17_000)
            #expect(refused.status == 431)
            #expect(refused.text.contains("\"limit\":16384"), "\(refused.text)")
            #expect(refused.interim.isEmpty && refused.location == nil)
            // Fields that are not stored do not count.
            let other = try server.exchange(
                .creation(.v8, "PUT", "/files/b", complete: true, .bytes([1]))
                    .with("X-Long", String(repeating: "z", count: 30_000)))
            #expect(other.status == 201)
            // A pair of Upload-Metadata that is not stored does not count, either.
            func post(_ key: String) throws -> Int {
                let pair = key + " " + String(repeating: "YWFh", count: 5000)
                return try server.exchange(
                    .creation(.v8, "POST", "/files/", complete: true, .bytes([1])).with("Upload-Metadata", pair)
                ).status
            }
            #expect(try post("relativePath") == 201)
            #expect(try post("name") == 431)
        }
    }

    @Test("SEC-15: the log does not contain the complete name of an upload")
    func uploadName() throws {
        try withServer("--log-level", "debug") { server in
            let location = try server.begin(.v8, "/files/f", [1])
            _ = try server.retrieve(location)
            _ = try server.exchange(.append(.v8, location, at: 9, complete: true, .bytes([1])))
            _ = try server.exchange(.append(.v8, location + "/x", at: 9, complete: true, .bytes([1])))
            _ = try server.exchange(.get("/files/f?from=" + location))
            _ = try server.exchange(.cancellation(.v8, location))
            #expect(try server.stop() == .exited(0))
            let name = try #require(location.split(separator: "/").last)
            #expect(!server.log.contains(name))
        }
    }
}
