import HTTPSemantics

/// The names of a directory in the order of their bytes, in little more memory than their bytes.
///
/// The names are in blocks of limited size, so that a change rewrites one block, and a page reads few.
struct SortedNames: Sendable {
    private static let maxBlockSize = 16 << 10

    /// The names of each block in their order, each after a byte with its length. No block is empty.
    private var blocks: [[UInt8]] = []
    /// The bytes of all blocks.
    private(set) var byteCount = 0

    /// Adds and removes names.
    mutating func apply(_ batch: consuming NameBatch) {
        batch.withSortedNames { batch in
            var result: [[UInt8]] = []
            result.reserveCapacity(blocks.count + 1)
            var merged: [UInt8] = []
            var done = 0
            if blocks.isEmpty { blocks = [[]] }
            for index in blocks.indices {
                var end = batch.count
                if index + 1 < blocks.count {
                    end = blocks[index + 1].withUnsafeBytes { block in
                        batch.firstIndex(from: done, notBefore: Self.name(in: block, at: 0))
                    }
                }
                if end == done {
                    if !blocks[index].isEmpty { result.append(blocks[index]) }
                    continue
                }
                merged.removeAll(keepingCapacity: true)
                blocks[index].withUnsafeBytes { Self.merge($0, with: batch, done..<end, into: &merged) }
                byteCount += merged.count - blocks[index].count
                Self.split(merged, into: &result)
                done = end
            }
            blocks = result
        }
    }

    private static func merge(
        _ block: UnsafeRawBufferPointer, with batch: NameBatch.Sorted, _ range: Range<Int>,
        into merged: inout [UInt8]
    ) {
        var position = 0
        for index in range {
            let name = batch[index]
            // Some file systems return a name twice if its file is replaced while the directory is read.
            if index > range.lowerBound, name.compared(to: batch[index - 1]) == 0 { continue }
            while position < block.count {
                let old = Self.name(in: block, at: position)
                let order = old.compared(to: name)
                if order > 0 { break }
                if order < 0 { Self.append(old, to: &merged) }
                position += 1 + old.count
            }
            if batch.isPresent(index) { Self.append(name, to: &merged) }
        }
        merged += block[position...]
    }

    private static func append(_ name: UnsafeRawBufferPointer, to bytes: inout [UInt8]) {
        bytes.append(UInt8(name.count))
        bytes += name
    }

    private static func name(in block: UnsafeRawBufferPointer, at position: Int) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: block[(position + 1)...].prefix(Int(block[position])))
    }

    /// Divides the names into blocks of about the same size.
    private static func split(_ names: [UInt8], into blocks: inout [[UInt8]]) {
        let count = (names.count + maxBlockSize - 1) / maxBlockSize
        let size = (names.count + count - 1) / max(1, count)
        var (start, end) = (0, 0)
        while end < names.count {
            end += 1 + Int(names[end])
            if end - start >= size || end == names.count {
                blocks.append(Array(names[start..<end]))
                start = end
            }
        }
    }

    /// Returns the first names after a cursor that begin with a prefix, without those that cannot be expressed in a URL.
    func page(after cursor: String?, prefix: String = "", limit: Int) -> NamePage {
        var page = NamePage()
        let (cursor, prefix) = (Array((cursor ?? "").utf8), Array(prefix.utf8))
        cursor.withUnsafeBytes { cursor in
            prefix.withUnsafeBytes { prefix in
                let start = cursor.compared(to: prefix) < 0 ? prefix : cursor
                // All names before the last block that starts at or before the start are before the start.
                var (first, end) = (0, blocks.count)
                while end - first > 1 {
                    let middle = (first + end) / 2
                    let isAfter = blocks[middle].withUnsafeBytes { Self.name(in: $0, at: 0).compared(to: start) > 0 }
                    if isAfter { end = middle } else { first = middle }
                }
                for block in blocks[first...] {
                    let isLast = block.withUnsafeBytes {
                        Self.append(from: $0, after: cursor, prefix: prefix, limit: limit, to: &page)
                    }
                    if isLast { return }
                }
            }
        }
        return page
    }

    /// Returns whether no later block has names for the page.
    private static func append(
        from block: UnsafeRawBufferPointer, after cursor: UnsafeRawBufferPointer, prefix: UnsafeRawBufferPointer,
        limit: Int, to page: inout NamePage
    ) -> Bool {
        var position = 0
        while position < block.count {
            let name = name(in: block, at: position)
            position += 1 + name.count
            guard name.starts(with: prefix) else {
                if name.compared(to: prefix) > 0 { return true }
                continue
            }
            guard name.compared(to: cursor) > 0, let text = NameSelection.listedName(name) else { continue }
            if page.names.count == limit {
                page.hasMore = true
                return true
            }
            page.names.append(text)
        }
        return false
    }
}

/// Names that are added to ``SortedNames`` or removed from them, collected in any order.
struct NameBatch {
    fileprivate struct Entry {
        /// Bytes of the name from the first byte in which two names of the batch differ: most comparisons need no more.
        var key: UInt64 = 0
        let start: Int
        let count: UInt8
        let isPresent: Bool
    }

    private var bytes: [UInt8] = []
    private var entries: [Entry] = []

    var count: Int { entries.count }

    /// Adds a name of at most 255 bytes. If a name is added more than once, it must have the same presence each time.
    mutating func append(_ name: UnsafeRawBufferPointer, isPresent: Bool = true) {
        entries.append(Entry(start: bytes.count, count: UInt8(name.count), isPresent: isPresent))
        bytes += name
    }

    /// Sorts the names and calls `body` with them.
    fileprivate mutating func withSortedNames(_ body: (Sorted) -> Void) {
        bytes.withUnsafeBytes { bytes in
            let first = entries.first.map { Sorted.name($0, bytes) }
            var shared = first?.count ?? 0
            for entry in entries {
                let name = Sorted.name(entry, bytes)
                while shared > 0, first?.prefix(shared).elementsEqual(name.prefix(shared)) != true { shared -= 1 }
            }
            for index in entries.indices { entries[index].key = Sorted.name(entries[index], bytes).number(at: shared) }
            entries.sort { first, second in
                if first.key != second.key { return first.key < second.key }
                return Sorted.name(first, bytes).compared(to: Sorted.name(second, bytes)) < 0
            }
            body(Sorted(bytes: bytes, entries: entries))
        }
    }

    /// The names of a batch in their order.
    fileprivate struct Sorted {
        let bytes: UnsafeRawBufferPointer
        let entries: [Entry]

        var count: Int { entries.count }

        subscript(index: Int) -> UnsafeRawBufferPointer { Self.name(entries[index], bytes) }

        func isPresent(_ index: Int) -> Bool { entries[index].isPresent }

        static func name(_ entry: Entry, _ bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
            UnsafeRawBufferPointer(rebasing: bytes[entry.start..<entry.start + Int(entry.count)])
        }

        /// Returns the first index at or after `start` whose name is not before `name`.
        func firstIndex(from start: Int, notBefore name: UnsafeRawBufferPointer) -> Int {
            var (start, end) = (start, count)
            while start < end {
                let middle = (start + end) / 2
                if self[middle].compared(to: name) < 0 { start = middle + 1 } else { end = middle }
            }
            return start
        }
    }
}

extension UnsafeRawBufferPointer {
    /// Returns a negative number if these bytes are before `other`, 0 if they are equal, and a positive number otherwise.
    fileprivate func compared(to other: UnsafeRawBufferPointer) -> Int {
        var position = 0
        while position < Swift.min(count, other.count) {
            let (own, others) = (number(at: position), other.number(at: position))
            if own != others { return own < others ? -1 : 1 }
            position += 8
        }
        return count - other.count
    }

    /// The eight bytes at a position as a number, the first byte the most significant; 0 for missing bytes. No name
    /// contains a byte 0.
    fileprivate func number(at position: Int) -> UInt64 {
        if position + 8 <= count {
            return UInt64(bigEndian: loadUnaligned(fromByteOffset: position, as: UInt64.self))
        }
        var number: UInt64 = 0
        for place in 0..<Swift.max(0, count - position) {
            number |= UInt64(self[position + place]) << (56 - 8 * place)
        }
        return number
    }
}
