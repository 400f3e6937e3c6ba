import FoundationEssentials
import SystemCalls
import TestSupport
import Testing

@testable import ObjectStorage

@Suite(
    "Objects in other object storages", .serialized, .enabled(if: OtherEngine.isRequired, "make test-engines runs it"))
struct EngineTests {
    @Test(
        "Objects with any key are stored, read, listed and deleted, and presigned URLs give them",
        arguments: OtherEngine.used)
    func objects(_ engine: OtherEngine) async throws {
        try await onThread {
            let server = try engine.start()
            let bucket = try server.newBucket()
            let client = S3Client(
                try ObjectStorageURI(parsing: bucket), ObjectCredentials(environment: server.environment))
            let keys = SeaweedFSTests.keys + ["back\\slash"]
            for (index, key) in keys.enumerated() {
                try client.put(key, Array("content \(index)".utf8))
            }
            for (index, key) in keys.enumerated() {
                #expect(try client.bytes(key, 0..<100) == Array("content \(index)".utf8), "\(key)")
            }
            let listed = try client.list(prefix: "", after: nil, limit: 1000).map(\.key)
            #expect(listed == keys.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) })
            #expect(try client.list(prefix: "a", after: "a b", limit: 2).map(\.key) == ["a#b?c", "a+b"])
            try client.delete(keys + ["missing"])
            #expect(try client.list(prefix: "", after: nil, limit: 1000) == [])
            try client.delete(["missing"])

            let large = (0..<(8 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }
            try client.put("large", large)
            try client.put("empty", [])
            #expect(try client.bytes("large", 5_000_000..<6_000_000) == Array(large[5_000_000..<6_000_000]))
            #expect(try client.bytes("large", (8 << 20) - 1..<(9 << 20)) == [large[(8 << 20) - 1]])
            #expect(try client.bytes("large", (8 << 20)..<(9 << 20)) == [])
            #expect(try client.bytes("empty", 0..<5) == [])
            #expect(throws: ObjectError.notFound) { try client.bytes("missing", 0..<5) }
            let listings = try client.list(prefix: "", after: nil, limit: 9)
            #expect(listings.map(\.size) == [0, 8 << 20])
            #expect(listings.allSatisfy { abs($0.lastModified - SystemClock.realtimeSeconds()) < 300 })

            var other = server.environment
            other["AWS_SECRET_ACCESS_KEY"] = "OTHER-SECRET"
            let refused = S3Client(try ObjectStorageURI(parsing: bucket), ObjectCredentials(environment: other))
            #expect {
                try refused.put("k", [1])
            } throws: { error in
                "\(error)".contains("403") && !"\(error)".contains("OTHER-SECRET")
            }
            try presigned(client)
        }
    }

    private func presigned(_ client: S3Client) throws {
        let key = "a b+\u{e9}/%"
        try client.put(key, Array("content".utf8))
        let disposition = "attachment; filename=\"x y.txt\"; filename*=UTF-8''%E2%82%AC.txt"
        let fields = [("Content-Disposition", disposition), ("Content-Type", "text/plain;charset=utf-8")]
        let url = try #require(try client.presignedURL(key, validFor: .seconds(60), responseFields: fields))
        let directory = try TemporaryDirectory()
        let curl = try ChildProcess(
            "/usr/bin/curl",
            ["-sS", "-r", "3-4", "-D", directory.path + "/head", "-o", directory.path + "/content", url])
        #expect(try curl.awaitEnding() == .exited(0), "\(curl.errorOutput)")
        let text = {
            String(decoding: FileManager.default.contents(atPath: directory.path + $0) ?? Data(), as: UTF8.self)
        }
        let head = text("/head").split(separator: "\r\n").map { $0.lowercased() }
        #expect(head.first?.hasPrefix("http/1.1 206") == true, "\(head)")
        #expect(head.contains("content-disposition: " + disposition.lowercased()), "\(head)")
        #expect(head.contains { $0.hasPrefix("content-type: text/plain") }, "\(head)")
        #expect(text("/content") == "te")
    }
}
