import Foundation
import SystemCalls
import TestSupport
import Testing

@testable import UploadStorage

/// Tests listings of published directories, entry by entry and in pages.
@Suite struct PublishedListingTests {
    private func offer(_ names: [String], to selection: inout NameSelection) {
        for name in names { Array(name.utf8).withUnsafeBytes { selection.offer($0) } }
    }

    @Test(
        "the pages of a directory contain each name once, in sorted order, for any order on disk",
        arguments: [1, 2, 3, 20_261_122] as [UInt64])
    func selection(_ seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let alphabet = Array("abcAB01 .-é日")
        var names: Set<String> = []
        for _ in 0..<500 {
            let letters = (0..<Int.random(in: 0...6, using: &generator)).compactMap { _ in
                alphabet.randomElement(using: &generator)
            }
            names.insert("n" + String(letters))
        }
        let sorted = names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
        for limit in [1, 2, 7, 100, sorted.count - 1, sorted.count, sorted.count + 1, 10_000] {
            var found: [String] = []
            var cursor: String?
            repeat {
                var selection = NameSelection(after: cursor, limit: limit)
                // Some file systems return a name twice if its file was replaced during the listing.
                offer(names.shuffled(using: &generator), to: &selection)
                offer(Array(names.shuffled(using: &generator).prefix(50)), to: &selection)
                let page = selection.page()
                #expect(page.names.count <= limit)
                #expect(!page.hasMore || page.names.count == limit)
                found += page.names
                cursor = page.hasMore ? page.names.last : nil
            } while cursor != nil && found.count <= sorted.count
            #expect(found == sorted, "limit \(limit)")
        }
    }

    @Test("only names that begin with the bytes of a prefix are selected")
    func prefixes() {
        let names = ["a", "ab", "abc", "abd", "ac", "Ab", "e\u{301}", "é", "日本"]
        for prefix in ["", "a", "ab", "abc", "abcd", "e", "é", "日", "x"] {
            let matches = names.filter { $0.utf8.starts(with: prefix.utf8) }
                .sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
            for limit in 1...3 {
                var found: [String] = []
                var cursor: String?
                repeat {
                    var selection = NameSelection(after: cursor, prefix: prefix, limit: limit)
                    offer(names, to: &selection)
                    let page = selection.page()
                    found += page.names
                    cursor = page.hasMore ? page.names.last : nil
                } while cursor != nil && found.count <= names.count
                #expect(found.map { Array($0.utf8) } == matches.map { Array($0.utf8) }, "'\(prefix)'")
            }
        }
    }

    @Test("names are sorted by their bytes, and names that no URL can contain are omitted")
    func order() {
        var selection = NameSelection(after: nil, limit: 10)
        // U+E000 is before U+10000 in UTF-8 and after it in UTF-16.
        offer(["\u{10000}", "\u{E000}", "b", "B", "é", "e\u{301}", "a\\b", "a\u{1}", "a\u{85}"], to: &selection)
        [0x61, 0xFF].withUnsafeBytes { selection.offer($0) }
        let page = selection.page()
        #expect(
            page.names.map { Array($0.utf8) }
                == ["B", "b", "e\u{301}", "é", "\u{E000}", "\u{10000}"].map { Array($0.utf8) })
        #expect(!page.hasMore)
    }

    private func publish(_ names: some Sequence<String>, in fixture: StoreFixture) throws {
        for text in names {
            let lease = try fixture.store.create(.testing())
            try lease.append(text)
            _ = try lease.publish(.testing(name(text)))
        }
    }

    @Test(
        "a name that exists all the time is on exactly one page, even if other names are added and removed",
        arguments: StoreKind.allCases
    )
    func changes(_ kind: StoreKind) throws {
        let fixture = try StoreFixture(kind)
        var generator = SeededGenerator(seed: 7)
        let stable = (0..<40).map { "s\($0)" }
        var passing = (0..<20).map { "p\($0)" }
        try publish(stable + passing, in: fixture)
        for limit in [1, 3, 16, 100] {
            var seen: [String] = []
            var cursor: String?
            repeat {
                let page = try fixture.store.page(after: cursor, limit: limit)
                seen += page.names
                cursor = page.next
                // The name in the cursor may be removed, too.
                if let index = passing.indices.randomElement(using: &generator) {
                    let removed = cursor.map { passing.firstIndex(of: $0) ?? index } ?? index
                    try fixture.store.remove(name(passing.remove(at: removed)))
                }
                let new = "p" + String(UInt32.random(in: 0 ... .max, using: &generator))
                try publish([new], in: fixture)
                passing.append(new)
            } while cursor != nil
            #expect(seen.filter { $0.hasPrefix("s") } == stable.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) })
            #expect(Set(seen).count == seen.count)
        }
    }

    @Test("a read error in a directory is reported, and the listing does not seem complete", arguments: [1, 2, 3])
    func failures(_ reads: Int) throws {
        let fixture = try StoreFixture(.memory)
        try publish(["a", "b", "c", "d"], in: fixture)
        let listing = try fixture.store.listing(of: .root)
        for _ in 1..<reads { _ = try listing.next() }
        fixture.plan.fail(.read, with: .inputOutput)
        #expect(throws: StoreError.io(.inputOutput, during: "list a directory")) { try listing.next() }
        #expect(throws: StoreError.self) { try fixture.store.page(limit: 1) }
        fixture.plan.fail(.read, with: nil)
        #expect(throws: StoreError.notFound) {
            try fixture.store.listing(of: #require(PublishedName.Directory(segments: ["none"])))
        }
        #expect(throws: StoreError.notFound) {
            try fixture.store.page(#require(PublishedName.Directory(segments: ["a"])), limit: 1)
        }
    }

    @Test("entries that disappear before their attributes are read and entries that are no files are omitted")
    func vanishing() throws {
        let fixture = try StoreFixture(.files)
        try publish(["a", "b", "c"], in: fixture)
        #expect(symlink("/etc", fixture.root + "/files/link") == 0)
        #expect(mkfifo(fixture.root + "/files/pipe", 0o600) == 0)
        let page = try fixture.store.page(of: .root, after: nil, limit: 10)
        try fixture.store.remove(name("b"))
        var names: [String] = []
        while let entry = try page.next() { names.append(entry.name) }
        #expect(names == ["a", "c"])
        #expect(try fixture.store.entries(in: .root).map(\.name) == ["a", "c"])
    }
}
