import PostgreSQL
import SystemCalls
import UploadStorage

/// A directory of published files, whose rows are read in pages in the order of the bytes of their names.
final class PublishedRows: PublishedDirectory {
    private static let pageSize = 500

    /// All entries from a name on, up to the last one.
    private struct Page {
        var first = ""
        var entries: [PublishedEntry] = []

        /// The entry with a name; `.some(nil)` if the page shows that there is none; `nil` if the page does not contain
        /// that range of names.
        func entry(_ name: String) -> PublishedEntry?? {
            guard let last = entries.last, !name.precedes(first), !last.name.precedes(name) else { return nil }
            var (low, high) = (0, entries.count - 1)
            while low < high {
                let middle = (low + high) / 2
                if entries[middle].name.precedes(name) { low = middle + 1 } else { high = middle }
            }
            return .some(name.precedes(entries[low].name) ? nil : entries[low])
        }
    }

    private let parent: String
    private let database: Database
    /// The page whose names are returned.
    private var page = Page()
    /// The number of names of the page that were returned.
    private var position = 0
    /// The first name of the next page; `nil` after the last page.
    private var next: String? = ""
    /// The name that is not returned although a page contains it.
    private var skipped: String?
    /// Whether the first name of the next page is also the last name of the current page.
    private var isRepeated = false
    /// The page of the entry that was requested last.
    private var requested = Page()

    init(of directory: PublishedName.Directory, in database: Database) {
        parent = directory.parentOfEntries
        self.database = database
    }

    func nextName<Result>(_ body: (UnsafeRawBufferPointer) -> Result) throws(Errno) -> Result? {
        while true {
            if position < page.entries.count {
                let name = page.entries[position].name
                position += 1
                if let skipped, !name.precedes(skipped), !skipped.precedes(name) { continue }
                return Array(name.utf8).withUnsafeBytes(body)
            }
            guard let first = next else { return nil }
            (page, position) = (try read(from: first), 0)
            next = page.entries.count < Self.pageSize ? nil : page.entries.last?.name
            if isRepeated { skipped = first }
            isRepeated = true
        }
    }

    func seek(after name: String?, prefix: String) -> Bool {
        (page, position, skipped, isRepeated) = (Page(), 0, name, false)
        next = if let name, prefix.precedes(name) { name } else { prefix }
        return true
    }

    var identityIfLarge: String? { nil }

    func watch() throws(Errno) -> DirectoryWatch { throw .notSupported }

    func entry(_ name: String) throws(Errno) -> PublishedEntry? {
        if let entry = page.entry(name) ?? requested.entry(name) { return entry }
        requested = try read(from: name)
        return requested.entry(name) ?? nil
    }

    private func read(from first: String) throws(Errno) -> Page {
        let rows: DatabaseRows
        do throws(DatabaseError) {
            rows = try database.run(
                DatabaseStatement(
                    ClusterSQL.entries, [.text(parent), .text(first), .integer(Int64(Self.pageSize))]))
        } catch { throw error.errno }
        let entries = (0..<rows.count).compactMap { row -> PublishedEntry? in
            guard let name = rows.text(row, 0), let isDirectory = rows.boolean(row, 1) else { return nil }
            return PublishedEntry(
                name: name, isDirectory: isDirectory, size: rows.integer(row, 2) ?? 0,
                modifiedSeconds: (rows.integer(row, 3) ?? 0) / 1_000_000_000)
        }
        return Page(first: first, entries: entries)
    }
}

extension String {
    /// Whether the bytes of this text come before those of another.
    fileprivate func precedes(_ other: String) -> Bool { utf8.lexicographicallyPrecedes(other.utf8) }
}
