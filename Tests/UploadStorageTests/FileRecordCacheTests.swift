import HTTPSemantics
import SystemCalls
import Testing

@testable import UploadStorage

@Suite("Records of downloaded files")
struct FileRecordCacheTests {
    private struct NoContent: PublishedContent {
        func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) -> Int { 0 }
        func duplicateForSending() -> Int32? { nil }
    }

    private func file(size: Int64 = 3, publishedAt time: Int64 = 7) throws -> PublishedBlob {
        let tag = try #require(EntityTag(opaque: "\(size)-\(time)"))
        let attributes = PublishedFile.Attributes(
            size: size, modifiedSeconds: 1, modifiedNanoseconds: time, entityTag: tag)
        return PublishedBlob(identity: "i", file: PublishedFile(attributes: attributes, content: NoContent()))
    }

    private func record(
        _ name: String = "a", size: Int64 = 3, publishedAt time: Int64 = 7, type: String = "text/plain"
    ) -> FileRecord {
        FileRecord(
            name: name, principal: "p", size: size, identity: "1.\(time)", modifiedSeconds: 1,
            fields: ["Content-Type": type])
    }

    /// Returns the names that were read from the catalog while `files` were requested.
    private func reads(
        _ cache: FileRecordCache, _ files: [(String, PublishedBlob)], in catalog: [String: FileRecord]
    ) throws -> [String] {
        var reads: [String] = []
        for (name, file) in files {
            let found = try cache.record(of: file, named: name) { name in
                reads.append(name)
                return catalog[name]
            }
            #expect(found.fields == catalog[name].flatMap { $0.describes(file) ? $0.fields : nil } ?? [:])
        }
        return reads
    }

    @Test("A record is read once")
    func once() throws {
        let cache = FileRecordCache()
        let file = try file()
        #expect(try reads(cache, [("a", file), ("a", file)], in: ["a": record()]) == ["a"])
    }

    @Test("The record of a file that was replaced is read again, and the old one is not used")
    func replaced() throws {
        let cache = FileRecordCache()
        #expect(try reads(cache, [("a", try file())], in: ["a": record()]) == ["a"])
        let new = record(publishedAt: 8, type: "text/csv")
        #expect(try reads(cache, [("a", try file(publishedAt: 8))], in: ["a": new]) == ["a"])
        // The file was replaced, and the record is not written yet.
        #expect(try reads(cache, [("a", try file(publishedAt: 9))], in: ["a": new]) == ["a"])
        #expect(try reads(cache, [("a", try file(publishedAt: 8))], in: ["a": new]) == ["a"])
        // A file of another size with the same time was changed by another program.
        #expect(try reads(cache, [("a", try file(size: 4, publishedAt: 8))], in: ["a": new]) == ["a"])
    }

    @Test("A missing record is read again only after its file was published")
    func missing() throws {
        let cache = FileRecordCache()
        let file = try file()
        #expect(try reads(cache, [("a", file), ("a", file)], in: [:]) == ["a"])
        // Another program has changed the file.
        let changed = try self.file(publishedAt: 8)
        #expect(try reads(cache, [("a", changed), ("a", changed)], in: [:]) == ["a"])
        cache.remove("a")
        #expect(try reads(cache, [("a", file), ("a", file)], in: ["a": record()]) == ["a"])
    }

    @Test("A record that is written while it is read as missing is read again")
    func publishedMeanwhile() throws {
        let cache = FileRecordCache()
        let file = try file()
        let before = try cache.record(of: file, named: "a") { _ in
            // The publication commits the record after this read, and then removes the cached record.
            cache.remove("a")
            return nil
        }
        #expect(before.fields.isEmpty)
        #expect(try reads(cache, [("a", file)], in: ["a": record()]) == ["a"])
    }

    @Test("The number and the size of records are bounded, and records in use stay")
    func bounded() throws {
        let cache = FileRecordCache(capacity: 4)
        let file = try file()
        let names = (0..<20).map { "n\($0)" }
        let catalog = Dictionary(uniqueKeysWithValues: names.map { ($0, record($0)) })
        let requests = names.flatMap { [($0, file), ("n0", file)] }
        #expect(try reads(cache, requests, in: catalog) == names)
        // At most two generations of four records are kept.
        #expect(try reads(cache, names.map { ($0, file) }, in: catalog).count >= 12)
        let long = record("b", type: String(repeating: "x", count: FileRecordCache.maxEntrySize))
        #expect(try reads(cache, [("b", file), ("b", file)], in: ["b": long]) == ["b", "b"])
    }
}
