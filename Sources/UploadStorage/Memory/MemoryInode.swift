/// The content of one file in the in-memory implementation: as processes see it, and as it is on the medium.
struct MemoryInode {
    static let pageSize = 512

    var content: [UInt8] = []
    var modified: Int64 = 0
    /// Counts changes of content and attributes.
    var changed = 0
    private var durableContent: [UInt8] = []
    private var durableModified: Int64 = 0
    private var durableChanged = 0
    /// Pages that the next synchronization writes.
    private var dirty: Set<Int> = []
    private var isSizeDirty = false
    /// The content before it was truncated; `nil` after the next synchronization. After a crash the medium can have it,
    /// because the system may have written it before.
    private var untruncated: [UInt8]?
    /// Whether a synchronization of the entire area has failed, and no synchronization of this file has reported that
    /// since.
    private var hasUnreportedError = false
    /// Whether attributes that are not on the medium are marked as clean. They are not written until they are set
    /// again.
    private var hasLostAttributes = false

    mutating func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) {
        guard !bytes.isEmpty else { return }
        let end = offset + bytes.count
        if end > content.count {
            content += [UInt8](repeating: 0, count: end - content.count)
            isSizeDirty = true
        }
        content.replaceSubrange(offset..<end, with: bytes)
        dirty.formUnion((offset / Self.pageSize)...((end - 1) / Self.pageSize))
        changed += 1
    }

    mutating func truncate(to size: Int) {
        if size < content.count {
            untruncated = content
            content.removeLast(content.count - size)
        } else {
            content += [UInt8](repeating: 0, count: size - content.count)
        }
        isSizeDirty = true
        dirty = dirty.filter { $0 * Self.pageSize < size }
        if size > 0 { dirty.insert((size - 1) / Self.pageSize) }
        changed += 1
    }

    /// Returns whether there is a failure that was not reported yet. After this call it counts as reported.
    mutating func takeUnreportedError() -> Bool {
        defer { hasUnreportedError = false }
        return hasUnreportedError
    }

    /// Fails because the entire area could not be synchronized.
    mutating func failToSynchronizeArea() {
        if !dirty.isEmpty || isSizeDirty { hasUnreportedError = true }
        failToSynchronize()
    }

    /// Writes the dirty pages.
    mutating func synchronize() {
        durableContent = resized(durableContent, to: content.count)
        for page in dirty { copy(page, into: &durableContent) }
        dirty = []
        isSizeDirty = false
        untruncated = nil
        if hasLostAttributes { return }
        durableModified = modified
        durableChanged = changed
    }

    /// Fails as Linux does: pages and attributes are marked as clean, and are not written again.
    mutating func failToSynchronize() {
        dirty = []
        hasLostAttributes = true
    }

    mutating func setModified(_ nanoseconds: Int64) {
        modified = nanoseconds
        changed += 1
        hasLostAttributes = false
    }

    /// Returns the content after a crash: any part of the changes that were not synchronized may be missing.
    func afterCrash(using generator: inout some RandomNumberGenerator) -> MemoryInode {
        var survivor = MemoryInode()
        var bytes = durableContent
        if isSizeDirty && Bool.random(using: &generator) || !isSizeDirty { bytes = resized(bytes, to: content.count) }
        for page in dirty.sorted() where Bool.random(using: &generator) { copy(page, into: &bytes) }
        if let untruncated, Bool.random(using: &generator) { bytes = untruncated }
        survivor.content = bytes
        survivor.durableContent = bytes
        let hasAttributes = Bool.random(using: &generator)
        survivor.modified = hasAttributes ? modified : durableModified
        survivor.changed = hasAttributes ? changed : durableChanged
        survivor.durableModified = survivor.modified
        survivor.durableChanged = survivor.changed
        return survivor
    }

    private func resized(_ bytes: [UInt8], to size: Int) -> [UInt8] {
        Array(bytes.prefix(size)) + [UInt8](repeating: 0, count: max(0, size - bytes.count))
    }

    private func copy(_ page: Int, into bytes: inout [UInt8]) {
        let start = page * Self.pageSize
        let end = min(start + Self.pageSize, min(content.count, bytes.count))
        if start < end { bytes.replaceSubrange(start..<end, with: content[start..<end]) }
    }
}
