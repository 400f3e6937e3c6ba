import FoundationEssentials
import HTTPSemantics
import SystemCalls
import TestSupport
import Testing

@testable import ObjectStorage

@Suite("Objects in SeaweedFS", .enabled(if: SeaweedFS.isInstalled, Comment(rawValue: SeaweedFS.reason)))
struct SeaweedFSTests {
    private func client(
        _ bucket: String, _ environment: [String: String], prefix: String = "",
        clock: @escaping @Sendable () -> Int64 = SystemClock.realtimeSeconds,
        limits: S3Client.Limits = S3Client.Limits()
    ) throws -> S3Client {
        let parts = bucket.split(separator: "?")
        return S3Client(
            try ObjectStorageURI(parsing: "\(parts[0])/\(prefix)?\(parts[1])"),
            ObjectCredentials(environment: environment), limits: limits, clock: clock)
    }

    private func client(prefix: String = "") throws -> S3Client {
        let server = try SeaweedFS.shared()
        return try client(server.newBucket(), server.environment, prefix: prefix)
    }

    /// SeaweedFS replaces backslashes with slashes.
    static let keys = [
        "plain", "a b", "a+b", "a=b&c", "(x)!*'", "a,b;c", "x@y:z$", "a#b?c", "100%", "%2F", "\u{e9}\u{1F600}",
        "e\u{301}",
        "\"<>&'", "[]{}|^`", "~tilde", "data/deep/er/k", "trailing.", "..hidden", "tab\there",
    ]

    @Test("An object with any key is stored, read, listed and deleted", arguments: ["", "pre fix/é+%/"])
    func everyKey(prefix: String) async throws {
        try await onThread {
            let client = try client(prefix: prefix.utf8.percentEncoded { $0.isUnreserved || $0 == UInt8(ascii: "/") })
            for (index, key) in Self.keys.enumerated() {
                try client.put(key, Array("content \(index)".utf8))
            }
            for (index, key) in Self.keys.enumerated() {
                #expect(try client.bytes(key, 0..<100) == Array("content \(index)".utf8), "\(key)")
            }
            let listed = try client.list(prefix: "", after: nil, limit: 1000).map(\.key)
            #expect(listed == Self.keys.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) })
            try client.delete(Self.keys + ["missing"])
            #expect(try client.list(prefix: "", after: nil, limit: 1000) == [])
            try client.delete(["missing"])
        }
    }

    @Test("Ranges of small, empty and large objects are read")
    func ranges() async throws {
        try await onThread {
            let client = try client(prefix: "p")
            var random = SeededGenerator(seed: 8)
            let large = (0..<(8 << 20)).map { _ in UInt8.random(in: 0...255, using: &random) }
            try client.put("large", large)
            try client.put("empty", [])
            try client.put("small", [1, 2, 3])
            #expect(try client.bytes("large", 0..<(8 << 20)) == large)
            #expect(try client.bytes("large", 5_000_000..<5_000_007) == Array(large[5_000_000..<5_000_007]))
            #expect(try client.bytes("large", (8 << 20) - 1..<(9 << 20)) == [large[(8 << 20) - 1]])
            #expect(try client.bytes("empty", 0..<5) == [])
            #expect(try client.bytes("small", 0..<5) == [1, 2, 3])
            #expect(try client.bytes("small", 3..<5) == [])
            #expect(throws: ObjectError.notFound) { try client.bytes("missing", 0..<5) }
            let listings = try client.list(prefix: "", after: nil, limit: 9)
            #expect(listings.map(\.size) == [0, 8 << 20, 3])
            #expect(listings.allSatisfy { abs($0.lastModified - SystemClock.realtimeSeconds()) < 300 })
        }
    }

    @Test("The bucket can be a part of the host")
    func virtualHost() async throws {
        try await onThread {
            let server = try SeaweedFS.shared()
            let endpoint = "http://localhost:\(server.port)"
            let bucket = try server.newBucket().replacing(server.endpoint, with: endpoint)
            let client = try client(bucket + "&style=host", server.environment, prefix: "p")
            try client.put("a b/%", [1, 2, 3])
            #expect(try client.bytes("a b/%", 1..<3) == [2, 3])
            #expect(try client.list(prefix: "a", after: nil, limit: 5).map(\.key) == ["a b/%"])
            try client.delete(["a b/%", "missing"])
            // The same object has another URL in the other style.
            try client.put("k", [1])
            #expect(try self.client(bucket, server.environment, prefix: "p").bytes("k", 0..<1) == [1])
        }
    }

    @Test("A list is complete with any limit")
    func lists() async throws {
        try await onThread {
            let client = try client(prefix: "p")
            let keys = (0..<25).map { "data/\($0 / 10)/\($0)" }
            for key in keys + ["other"] { try client.put(key, [0]) }
            for limit in [1, 3, 25, 1000] {
                var listed: [String] = []
                while true {
                    let part = try client.list(prefix: "data/", after: listed.last, limit: limit).map(\.key)
                    listed += part
                    if part.count < limit { break }
                }
                #expect(listed == keys.sorted())
            }
        }
    }

    @Test("Threads use the client at the same time, each with its own connection")
    func concurrency() async throws {
        try await onThread {
            let client = try client()
            let workers = try (0..<8).map { number in
                try WorkerThread(name: "put") {
                    for index in 0..<20 {
                        do {
                            try client.put("\(number)/\(index)", Array("\(number) \(index)".utf8))
                            #expect(try client.bytes("\(number)/\(index)", 0..<9) == Array("\(number) \(index)".utf8))
                        } catch { Issue.record(error) }
                    }
                }
            }
            for worker in workers { worker.join() }
            #expect(try client.list(prefix: "", after: nil, limit: 1000).count == 160)
        }
    }

    @Test("A presigned URL gives the object to curl, with a type and a name for the file")
    func presigned() async throws {
        try await onThread {
            let server = try SeaweedFS.shared()
            let bucket = try server.newBucket()
            let client = try client(bucket, server.environment)
            let key = "a b+é/%"
            try client.put(key, Array("content".utf8))
            let disposition = "attachment; filename=\"x y.txt\"; filename*=UTF-8''%E2%82%AC.txt"
            let url = try #require(
                try client.presignedURL(
                    key, validFor: .seconds(60),
                    responseFields: [
                        ("Content-Disposition", disposition), ("Content-Type", "text/plain;charset=utf-8"),
                    ]))
            #expect(!url.contains("SECRETKEY"))
            let directory = try TemporaryDirectory()
            func fetch(_ url: String, _ options: String...) throws -> ([String], String) {
                let curl = try ChildProcess(
                    "/usr/bin/curl",
                    ["-sS", "-D", directory.path + "/head", "-o", directory.path + "/content"] + options + [url])
                try #require(try curl.awaitEnding() == .exited(0), "\(curl.errorOutput)")
                let text = { String(decoding: FileManager.default.contents(atPath: $0) ?? Data(), as: UTF8.self) }
                let lines = text(directory.path + "/head").split(separator: "\r\n").map(String.init)
                return (lines, text(directory.path + "/content"))
            }
            let (head, content) = try fetch(url)
            #expect(head.first == "HTTP/1.1 200 OK")
            #expect(head.contains("Content-Disposition: " + disposition))
            #expect(head.contains("Content-Type: text/plain;charset=utf-8"))
            #expect(content == "content")
            #expect(try fetch(url, "-r", "3-4").1 == "te")
            let changed = try fetch(url.replacing("x%20y.txt", with: "evil.exe"))
            #expect(changed.0.first?.hasPrefix("HTTP/1.1 403") == true)
            // The URL was made in the past.
            let past = try self.client(
                bucket, server.environment, clock: { SystemClock.realtimeSeconds() - 100 })
            let (expired, _) = try fetch(try #require(try past.presignedURL(key, validFor: .seconds(60))))
            #expect(expired.first?.hasPrefix("HTTP/1.1 403") == true)
        }
    }

    @Test("The server refuses other keys and requests of another time, and the text names the reason")
    func refusals() async throws {
        try await onThread {
            let server = try SeaweedFS.shared()
            let bucket = try server.newBucket()
            func message(_ client: S3Client) -> String {
                do throws(ObjectError) {
                    try client.put("k", [1])
                    return "no error"
                } catch {
                    return "\(error)"
                }
            }
            var environment = server.environment
            environment["AWS_SECRET_ACCESS_KEY"] = "OTHER-SECRET"
            let wrong = message(try client(bucket, environment))
            #expect(wrong.contains("403 SignatureDoesNotMatch") && !wrong.contains("OTHER-SECRET"))
            let late = try client(bucket, server.environment, clock: { SystemClock.realtimeSeconds() + 1200 })
            let text = message(late)
            #expect(text.contains("403 RequestTimeTooSkewed: the clock of this machine is 1"), "\(text)")
            #expect(text.contains("ahead of the clock of the storage; synchronize it"))
            let missing = try client("s3://missing-bucket?endpoint=" + server.endpoint, server.environment)
            #expect {
                try missing.list(prefix: "", after: nil, limit: 1)
            } throws: { error in
                "\(error)".contains("404 NoSuchBucket")
            }
        }
    }

    @Test("Over TLS the certificate is verified")
    func tls() async throws {
        try await onThread {
            let certificate = try SelfSignedCertificate()
            let server = try SeaweedFS(certificate: certificate)
            let trusting = try client(
                server.newBucket(caFile: certificate.certificate), server.environment, prefix: "p")
            try trusting.put("k", [1, 2, 3])
            #expect(try trusting.bytes("k", 1..<3) == [2, 3])
            #expect(try trusting.presignedURL("k", validFor: .seconds(1))?.hasPrefix("https://127.0.0.1:") == true)
            let other = try client(server.newBucket(), server.environment)
            #expect {
                try other.put("k", [1])
            } throws: { error in
                if case ObjectError.unavailable(let text) = error {
                    text.hasPrefix("no secure connection: ") && !text.contains("attempts")
                } else {
                    false
                }
            }
        }
    }

    @Test(
        "An upload through a network that fails for some time succeeds when the network is back",
        arguments: [
            FaultProxy.Network.cut, .stalled([.toServer]), .stalled([.toClient]), .stalled([.toServer, .toClient]),
        ])
    func partition(_ network: FaultProxy.Network) async throws {
        try await onThread {
            let server = try SeaweedFS.shared()
            let proxy = try FaultProxy(to: server.port)
            let bucket = try server.newBucket().replacing(server.endpoint, with: proxy.url)
            var limits = S3Client.Limits()
            limits.stall = .milliseconds(500)
            let client = try client(bucket, server.environment, limits: limits)
            try client.put("before", [1])
            proxy.set(network)
            let connections = proxy.connections
            let uploading = try WorkerThread(name: "put") {
                do { try client.put("during", Array(repeating: 7, count: 100_000)) } catch { Issue.record(error) }
            }
            // The client comes back with a second connection while the network fails.
            #expect(pollUntil(within: .seconds(30)) { proxy.connections >= connections + 2 ? true : nil } == true)
            proxy.set(.open)
            uploading.join()
            #expect(try client.bytes("during", 0..<200_000).count == 100_000)
            proxy.set(.delayed(.milliseconds(5)))
            #expect(try client.bytes("before", 0..<1) == [1])
        }
    }

    @Test("If the server is killed, the error comes in time")
    func killed() async throws {
        try await onThread {
            let server = try SeaweedFS()
            let bucket = try server.newBucket()
            try client(bucket, server.environment).put("k", [1])
            var limits = S3Client.Limits()
            limits.total = .seconds(1)
            let client = try client(bucket, server.environment, limits: limits)
            server.stop()
            #expect {
                try client.put("k", [1])
            } throws: { error in
                if case ObjectError.unavailable = error { true } else { false }
            }
        }
    }
}
