import Foundation
import SystemCalls
import TestSupport
import Testing

@testable import UploadStorage

/// Tests pages of large directories, whose names are kept in memory.
@Suite struct NameIndexTests {
    private func batch(_ names: some Sequence<String>, isPresent: Bool = true) -> NameBatch {
        var batch = NameBatch()
        for name in names { Array(name.utf8).withUnsafeBytes { batch.append($0, isPresent: isPresent) } }
        return batch
    }

    private func pages(of names: SortedNames, prefix: String = "", limit: Int) -> [String] {
        var found: [String] = []
        var cursor: String?
        repeat {
            let page = names.page(after: cursor, prefix: prefix, limit: limit)
            #expect(page.names.count <= limit && (!page.hasMore || page.names.count == limit))
            found += page.names
            cursor = page.hasMore ? page.names.last : nil
        } while cursor != nil
        return found
    }

    @Test(
        "names that are added and removed in any order are on the pages in the order of their bytes",
        arguments: [1, 2, 3, 4] as [UInt64])
    func changes(_ seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let letters = ["a", "b", "A", "é", "日", " ", "-", "x.bin", "a long part of a name, which fills blocks "]
        func randomName() -> String {
            "n"
                + (0..<Int.random(in: 0...5, using: &generator)).map { _ in
                    letters.randomElement(using: &generator) ?? ""
                }
                .joined()
        }
        var expected: Set<String> = []
        var names = SortedNames()
        for size in [0, 1, 3, 5000, 1, 300, 5000, 20] {
            let changed = Set((0..<size).map { _ in randomName() })
            let removed = Set(expected.sorted().shuffled(using: &generator).prefix(size / 2)).subtracting(changed)
            // A directory can return a name twice.
            names.apply(batch(Array(changed) + changed.prefix(2)))
            names.apply(batch(removed.union(["not in the directory"]), isPresent: false))
            expected = expected.union(changed).subtracting(removed)
            let sorted = expected.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
            for limit in [7, 1000, max(1, sorted.count - 1), sorted.count + 1] {
                #expect(pages(of: names, limit: limit) == sorted, "seed \(seed), \(sorted.count) names, limit \(limit)")
            }
            #expect(names.byteCount == sorted.reduce(0) { $0 + $1.utf8.count + 1 })
            for cursor in (0..<20).map({ _ in randomName() }) {
                let following = sorted.filter { cursor.utf8.lexicographicallyPrecedes($0.utf8) }
                #expect(names.page(after: cursor, limit: 3).names == Array(following.prefix(3)))
            }
            for prefix in ["", "n", "na", "né", "n日a", "na long part", "m", "o", "nnn"]
                + sorted.shuffled(using: &generator).prefix(5)
            {
                let matches = sorted.filter { $0.utf8.starts(with: prefix.utf8) }
                #expect(pages(of: names, prefix: prefix, limit: 50) == matches, "seed \(seed), '\(prefix)'")
                #expect(!names.page(after: nil, prefix: prefix, limit: max(1, matches.count)).hasMore)
            }
        }
        names.apply(batch(expected, isPresent: false))
        #expect(names.page(after: nil, limit: 1) == NamePage() && names.byteCount == 0)
    }

    @Test("names that no URL can contain are not on a page")
    func invalidNames() {
        var names = SortedNames()
        var changes = batch(["b", "a\\b", "a\u{1}", "c"])
        ([0x61, 0xFF] as [UInt8]).withUnsafeBytes { changes.append($0) }
        names.apply(changes)
        #expect(names.page(after: nil, limit: 2) == NamePage(names: ["b", "c"], hasMore: false))
    }

    /// A directory with so many files that its names are kept.
    private func makeLargeDirectory(_ path: String) throws -> FileDescriptor {
        try FileDescriptor.makeDirectory(path)
        let directory = try FileDescriptor.open(path, [.readOnly, .directory])
        for number in 0..<4000 { _ = try directory.open(at: "file \(number)", [.writeOnly, .create]) }
        return directory
    }

    private func expectAllPages(of name: String, in fixture: StoreFixture, _ what: String) throws {
        let directory = try #require(PublishedName.Directory(segments: [name]))
        var found: [String] = []
        var cursor: String?
        repeat {
            let page = try fixture.store.page(directory, after: cursor, limit: 1500)
            found += page.names
            cursor = page.next
        } while cursor != nil
        let expected = try fixture.store.entries(in: directory).map(\.name)
        #expect(found == expected, "\(what)")
    }

    @Test("a page of a large directory has every change that any program has made")
    func observation() throws {
        let fixture = try StoreFixture(.files)
        let path = fixture.root + "/files/large"
        let directory = try makeLargeDirectory(path)
        try expectAllPages(of: "large", in: fixture, "at first")
        let root = try FileDescriptor.open(fixture.root + "/files", [.readOnly, .directory])

        _ = try directory.open(at: "by hand", [.writeOnly, .create])
        try expectAllPages(of: "large", in: fixture, "created")
        try directory.unlink(at: "file 7")
        try directory.makeDirectory(at: "a directory")
        try expectAllPages(of: "large", in: fixture, "removed, and a directory created")
        try directory.rename(from: "file 8", to: directory, as: "file eight")
        try directory.rename(from: "file 9", to: root, as: "file nine")
        try directory.rename(from: "file 10", to: directory, as: "file 11")
        try directory.link(from: "file 12", to: directory, as: "file twelve")
        try expectAllPages(of: "large", in: fixture, "renamed and linked")
        // An exchange keeps both names, although its events seem to remove them.
        try directory.exchange("file 13", with: root, "file nine")
        try directory.exchange("file 14", with: directory, "a directory")
        try expectAllPages(of: "large", in: fixture, "exchanged")
        for published in ["large/file 15", "large/published"] {
            let lease = try fixture.store.create(.testing())
            try lease.append("content")
            _ = try lease.publish(.testing(name(published)))
        }
        try fixture.store.remove(name("large/file 16"))
        try expectAllPages(of: "large", in: fixture, "published and removed by the store")
    }

    @Test("after more changes than the kernel keeps, and in another directory of the same name, pages are complete")
    func losses() throws {
        let fixture = try StoreFixture(.files)
        let path = fixture.root + "/files/large"
        let directory = try makeLargeDirectory(path)
        try expectAllPages(of: "large", in: fixture, "at first")
        let kept =
            Int(
                try String(contentsOfFile: "/proc/sys/fs/inotify/max_queued_events", encoding: .utf8)
                    .trimmingCharacters(in: .whitespacesAndNewlines)) ?? 16384
        for _ in 0..<kept / 4 + 100 {
            try directory.rename(from: "file 1", to: directory, as: "one")
            try directory.rename(from: "one", to: directory, as: "file 1")
        }
        _ = try directory.open(at: "after the others", [.writeOnly, .create])
        try expectAllPages(of: "large", in: fixture, "after lost changes")

        let root = try FileDescriptor.open(fixture.root + "/files", [.readOnly, .directory])
        try root.rename(from: "large", to: root, as: "moved")
        _ = try makeLargeDirectory(path).open(at: "only here", [.writeOnly, .create])
        try expectAllPages(of: "large", in: fixture, "in another directory of the same name")
        try expectAllPages(of: "moved", in: fixture, "in a directory that was moved")
    }

    @Test("an index is removed when it has not been used for a minute")
    func removal() throws {
        let fixture = try StoreFixture(.files)
        _ = try makeLargeDirectory(fixture.root + "/files/large")
        try expectAllPages(of: "large", in: fixture, "at first")
        let indexes = fixture.store.context.nameIndexes
        let now = SystemClock.monotonicNanoseconds()
        let kept = indexes.byteCount
        if try FileDescriptor.open(fixture.root, [.readOnly]).canBeObserved { #expect(kept > 4000) }
        indexes.removeUnused(at: now + 50_000_000_000)
        #expect(indexes.byteCount == kept)
        indexes.removeUnused(at: now + 61_000_000_000)
        #expect(indexes.byteCount == 0)
        try expectAllPages(of: "large", in: fixture, "after the removal")
    }
}
