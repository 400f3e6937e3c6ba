import HTTPSemantics
import SystemCalls

/// The entries of a directory of published files, one at a time. The attributes of an entry are read only when
/// ``next()`` returns it.
///
/// Only files and directories whose names can be expressed in a URL (``PathSegments``) are listed. Use this object from
/// one thread at a time; the directory stays open as long as the object exists.
package final class PublishedListing {
    private let directory: any PublishedDirectory
    /// The remaining names of the page; nil if the names of the complete directory are listed while it is read.
    private var names: ArraySlice<String>?
    /// The cursor of the next page; nil if this is the last page, or if the complete directory is listed.
    package let nextCursor: String?

    init(_ directory: any PublishedDirectory) {
        self.directory = directory
        nextCursor = nil
    }

    init(_ directory: any PublishedDirectory, _ selection: consuming NameSelection) {
        self.directory = directory
        let page = selection.page()
        names = page.names[...]
        nextCursor = page.hasMore ? page.names.last : nil
    }

    /// The next entry; nil at the end.
    /// - Throws: `StoreError` if the directory cannot be read further. The entries so far are then incomplete.
    package func next() throws(StoreError) -> PublishedEntry? {
        try translating("list a directory") { () throws(Errno) in
            while let name = try nextName() {
                if let entry = try directory.entry(name) { return entry }
            }
            return nil
        }
    }

    private func nextName() throws(Errno) -> String? {
        if names != nil { return names?.popFirst() }
        while let name = try directory.nextName({ NameSelection.listedName($0) }) {
            if let name { return name }
        }
        return nil
    }
}
