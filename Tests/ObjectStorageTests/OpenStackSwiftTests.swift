import HTTPSemantics
import SystemCalls
import TestSupport
import Testing

@testable import ObjectStorage

@Suite("Objects in OpenStack Swift", .enabled(if: OpenStackSwift.isAvailable, Comment(rawValue: OpenStackSwift.reason)))
struct OpenStackSwiftTests {
    @Test("Objects with any key are stored, read, listed and deleted")
    func objects() async throws {
        try await onThread {
            let server = try OpenStackSwift()
            let client = S3Client(
                try ObjectStorageURI(parsing: server.newBucket()), ObjectCredentials(environment: server.environment))
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
        }
    }
}
