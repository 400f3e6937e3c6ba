import ObjectStorage
import Testing

@Suite("Objects in memory")
struct MemoryObjectStoreTests {
    let store = MemoryObjectStore(clock: { 7 })

    @Test("A range ends with the object, and a key that does not exist is reported")
    func ranges() throws {
        try store.put("a", [1, 2, 3])
        #expect(try store.bytes("a", 1..<9) == [2, 3])
        #expect(try store.bytes("a", 3..<9) == [])
        #expect(throws: ObjectError.notFound) { try store.bytes("b", 0..<1) }
    }

    @Test("A list is sorted by bytes, begins after a key, and has a limit")
    func lists() throws {
        for key in ["p/b", "p/a", "p/\u{e9}", "q", "p/c"] { try store.put(key, [0]) }
        try store.delete(["p/c", "missing"])
        #expect(try store.list(prefix: "p/", after: nil, limit: 2).map(\.key) == ["p/a", "p/b"])
        #expect(
            try store.list(prefix: "p/", after: "p/a", limit: 9) == [
                ObjectListing(key: "p/b", size: 1, lastModified: 7),
                ObjectListing(key: "p/\u{e9}", size: 1, lastModified: 7),
            ])
    }

    @Test("An operation can fail without its effect, after its effect, or before its effect")
    func faults() throws {
        store.setFault { $0 == .put(key: "a", count: 1) ? .fail(.unavailable("x")) : nil }
        #expect(throws: ObjectError.unavailable("x")) { try store.put("a", [1]) }
        #expect(store.contents.isEmpty)
        store.setFault { _ in .loseResponse }
        #expect(throws: ObjectError.self) { try store.put("a", [1]) }
        #expect(store.contents == ["a": [1]])
        store.setFault { _ in .postpone }
        #expect(throws: ObjectError.self) { try store.delete(["a"]) }
        #expect(store.contents == ["a": [1]])
        store.performPostponed()
        #expect(store.contents.isEmpty)
        #expect(store.operations.count == 3)
    }
}

extension ObjectStore {
    /// The bytes of a range of an object.
    func bytes(_ key: String, _ range: Range<Int64>) throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: range.count)
        let count = try bytes.withUnsafeMutableBytes { try get(key, range, into: $0) }
        return Array(bytes.prefix(count))
    }
}
