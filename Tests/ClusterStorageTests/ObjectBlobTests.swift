import Glibc
import ObjectStorage
import Synchronization
import SystemCalls
import TestSupport
import Testing

@testable import ClusterStorage
@testable import UploadStorage

/// Tests the bytes of uploads in an object storage.
@Suite(.serialized, .enabled(if: PostgreSQLCluster.isInstalled, Comment(rawValue: PostgreSQLCluster.requirement)))
struct ObjectBlobTests {
    private static let small = PieceLimits(maxSize: 4096, maxInlineSize: 256, minMemory: 128, memory: 1 << 20)

    private let fixture: AreaFixture

    init() throws { fixture = try AreaFixture() }

    @Test("bytes can be read before they are stored, afterwards, and from another node after they are recorded")
    func roundTrip() throws {
        let (first, second) = (try fixture.node(Self.small), try fixture.node(Self.small))
        try fixture.insertUpload("b", holder: first)
        let bytes = content(30_000)
        let blob = try first.area.create("b")
        try blob.append(Array(bytes[..<10_001]))
        #expect(try blob.readAll() == Array(bytes[..<10_001]))
        try blob.synchronize(including: .name)
        #expect(try second.area.size(of: "b") == 0)
        try fixture.record("b", offset: 10_001, by: first)
        #expect(try second.area.size(of: "b") == 10_001)
        let other = try second.area.open("b")
        #expect(try other.readAll() == Array(bytes[..<10_001]))
        try other.append(Array(bytes[10_001...]))
        #expect(try other.readAll(from: 9000, blockSize: 700) == Array(bytes[9000...]))
        try other.synchronize(including: .name)
        try fixture.record("b", offset: 30_000, by: second)
        #expect(try first.area.open("b").readAll() == bytes)
        #expect(try first.area.openBlob("b").attributes().size == 30_000)
        #expect(try blob.identity() == other.identity())
    }

    @Test("an offset is recorded only with the pieces before it, and a change without them affects no other change")
    func offsetsWithoutPieces() throws {
        let node = try fixture.node(Self.small)
        let bytes = content(5000)
        func store(_ bytes: [UInt8], of row: CatalogRow) throws -> ObjectBlob {
            let blob = try node.area.openBlob(row.blob)
            try blob.append(bytes)
            try blob.synchronize(including: .name)
            return blob
        }
        func advance(_ row: CatalogRow, to offset: Int) -> CatalogChange {
            .advance(
                CatalogChange.Advance(id: row.id, epoch: 1, offset: Int64(offset), length: nil, digestStates: []))
        }
        let rows = (0..<2).map { _ in CatalogRow.testing() }
        for row in rows {
            try node.catalog.commit(.insert(row))
            let blob = try store(Array(bytes[..<2000]), of: row)
            try node.catalog.commit(advance(row, to: 2000))
            withExtendedLifetime(blob) {}
        }
        // As if a request had found that the session may have ended, and forgotten the upload, before the change is made.
        _ = try store(Array(bytes[2000...]), of: rows[0])
        let kept = try store(Array(bytes[2000...]), of: rows[1])
        let outcomes = node.catalog.commit([advance(rows[0], to: 5000), advance(rows[1], to: 5000)])
        withExtendedLifetime(kept) {}
        guard case .failure(.superseded) = outcomes[0], case .success = outcomes[1] else {
            Issue.record("\(outcomes)")
            return
        }
        for (row, size) in zip(rows, [2000, 5000]) {
            #expect(try node.catalog.row(row.id)?.offset == Int64(size))
            #expect(try node.area.open(row.blob).readAll() == Array(bytes[..<size]))
        }
        #expect(throws: StoreError.superseded) { try node.catalog.commit(.insert(.testing(offset: 1))) }
    }

    @Test("the blob of an upload without bytes can be opened, but a blob that belongs to no upload cannot")
    func empty() throws {
        let node = try fixture.node()
        try fixture.insertUpload("b", holder: node)
        #expect(try node.area.open("b").size() == 0)
        #expect(try node.area.size(of: "b") == 0)
        #expect(try node.area.size(of: "c") == nil)
        #expect(throws: Errno.noSuchFile) { try node.area.open("c") }
    }

    @Test("an upload without a row fails while its bytes arrive if the session has changed since its first objects")
    func changedSession() throws {
        let node = try fixture.node(Self.small)
        let blob = try node.area.create("b")
        try blob.append(content(2 * 4096))
        let areStored: Bool? = pollUntil(within: .seconds(30)) { fixture.dataObjects.count == 2 ? true : nil }
        #expect(areStored == true)
        let next = try fixture.node(Self.small).session
        node.area.node.session.withLock { _ = $0.opened(next, sentAt: .max >> 1) }
        // The buffers have room for three pieces.
        #expect(throws: Errno.timedOut) { try blob.append(content(6 * 4096)) }
        // Another upload is not affected.
        let other = try node.area.create("c")
        try other.append(content(6 * 4096))
        try other.synchronize(including: .attributes)
    }

    @Test("many small appends result in few pieces, and each byte is stored only a few times")
    func merging() throws {
        let node = try fixture.node(Self.small)
        try fixture.insertUpload("b", holder: node)
        let blob = try node.area.create("b")
        let bytes = content(100 * 83)
        for part in 0..<100 {
            try blob.append(Array(bytes[part * 83..<(part + 1) * 83]))
            try blob.synchronize(including: .name)
            try fixture.record("b", offset: Int64(part + 1) * 83, by: node)
            let sizes = try fixture.pieceSizes("b")
            for (size, next) in zip(sizes, sizes.dropFirst()) { #expect(size > 2 * next || size + next > 4096) }
        }
        #expect(try fixture.pieceSizes("b").count <= 10)
        #expect(try fixture.namedObjects() == fixture.dataObjects.filter { try !isGarbage($0) })
        let stored = fixture.objects.operations.reduce(0) { sum, operation in
            if case .put(_, let count) = operation { sum + count } else { sum }
        }
        // log 4096/83 to the base 1.5 is 9.6.
        #expect(stored < 10 * bytes.count)
        #expect(try node.area.open("b").readAll() == bytes)
    }

    @Test("an upload with many pieces needs the memory of a list, and its bytes can be read, appended and removed")
    func manyPieces() throws {
        let (count, size) = (PostgreSQLCluster.isRequired ? 1_000_000 : 300_000, 64 << 10)
        let node = try fixture.node()
        try fixture.insertUpload("b", holder: node)
        try fixture.insertPieces("b", count, of: size, by: node)
        let bytes = content(size)
        let stored = [0, count / 2, 1023]
        for index in stored { try fixture.objects.put("data/b/\(node.session)-\(index)", bytes) }
        let blob = try node.area.openBlob("b")
        func requireShortList() { #expect(blob.state.withLock { $0.pieces.count } <= 2 * PieceLimits().maxListed) }
        requireShortList()
        #expect(try blob.size() == Int64(count * size))
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: size - 1, alignment: 1)
        defer { buffer.deallocate() }
        for index in stored {
            #expect(try blob.read(into: buffer, at: Int64(index * size) + 1) == buffer.count)
            #expect(buffer.elementsEqual(bytes[1...]))
        }
        // The bytes that are removed first are in the list, the others are not.
        let part = Array(bytes[..<10_000])
        for remaining in [count - 10, count - 5000] {
            let end = Int64(remaining * size) - 100
            try blob.truncate(to: end)
            try blob.append(part)
            try blob.synchronize(including: .name)
            requireShortList()
            try fixture.record("b", offset: end + Int64(part.count), by: node)
            #expect(try fixture.count("onward.piece") == remaining + 1)
            #expect(try blob.readAll(from: end) == part)
            #expect(try node.area.size(of: "b") == end + Int64(part.count))
        }
        #expect(try fixture.count("onward.garbage") == 5000)
        #expect(try part.withUnsafeBytes { try blob.write($0, at: 0) } == part.count)
        #expect(try blob.readAll() == part)
    }

    @Test("the list of an upload keeps the pieces that are not recorded, and few of the others")
    func shortList() throws {
        var limits = Self.small
        limits.maxListed = 3
        let node = try fixture.node(limits)
        try fixture.insertUpload("b", holder: node)
        let blob = ObjectBlob("b", isNew: true, in: node.area.storage)
        var listed: Int { blob.state.withLock { $0.pieces.count } }
        let bytes = content(40 * 4096)
        for part in 0..<20 {
            try blob.append(Array(bytes[part * 4096..<(part + 1) * 4096]))
            try blob.synchronize(including: .name)
            #expect(listed == part + 1)
        }
        // A transaction that may have been committed has recorded nothing yet.
        node.ledger.outcomeBecameUnknown(of: try #require(node.ledger.change(of: "b")))
        for part in 20..<40 {
            try fixture.record("b", offset: Int64(part * 4096), by: node)
            try blob.append(Array(bytes[part * 4096..<(part + 1) * 4096]))
            try blob.synchronize(including: .name)
            #expect(listed <= 6)
        }
        #expect(try blob.readAll(blockSize: 5000) == bytes)
        try fixture.record("b", offset: Int64(bytes.count), by: node)
        #expect(try node.area.open("b").readAll(blockSize: 999) == bytes)
    }

    @Test("a list contains few bytes, even if many pieces are in the database")
    func listedData() throws {
        var limits = PieceLimits()
        // Without memory to merge pieces, each part below gets a row.
        limits.memory = 128 << 10
        let node = try fixture.node(limits)
        try fixture.insertUpload("b", holder: node)
        try fixture.run(
            """
            INSERT INTO onward.piece (blob, start, size, data)
            SELECT 'b', n << 16, 1 << 16, decode(repeat(lpad(to_hex(n), 4, '0'), 1 << 15), 'hex')
            FROM generate_series(0, 99) AS n
            """)
        #expect(try fixture.database.run(limits.pieces(of: "b", before: .max)).count == 2)
        #expect(try fixture.database.run(limits.pieces(of: "b", from: 0)).count == 16)
        let blob = try node.area.openBlob("b")
        var bytes = (0..<100).flatMap { number in (0..<1 << 16).map { $0 % 2 == 0 ? 0 : UInt8(number) } }
        #expect(try blob.readAll() == bytes)
        for step in 1...50 {
            let part = content(60 << 10, seed: UInt64(step))
            try blob.append(part)
            bytes += part
            try blob.synchronize(including: .name)
            try fixture.record("b", offset: Int64(bytes.count), by: node)
            #expect(blob.state.withLock { $0.pieces.reduce(0) { $0 + $1.inlineSize } } <= 5 << 16)
        }
        #expect(try fixture.count("onward.piece WHERE data IS NOT NULL") == 150)
        #expect(try blob.readAll() == bytes)
    }

    private func isGarbage(_ key: String) throws -> Bool {
        try fixture.count("onward.garbage WHERE object = $1", [.text(key)]) > 0
    }

    @Test("if bytes cannot be stored, nothing is registered, and the recorded bytes can be opened again")
    func failure() throws {
        let node = try fixture.node(Self.small)
        try fixture.insertUpload("b", holder: node)
        let bytes = content(20_000)
        let blob = try node.area.create("b")
        try blob.append(Array(bytes[..<5000]))
        try blob.synchronize(including: .name)
        try fixture.record("b", offset: 5000, by: node)
        fixture.objects.setFault { operation in
            if case .put = operation { .fail(.unavailable("test")) } else { nil }
        }
        try? blob.append(Array(bytes[5000...]))
        #expect(throws: Errno.timedOut) { try blob.synchronize(including: .name) }
        #expect(throws: Errno.timedOut) { try blob.synchronize(including: .name) }
        #expect(throws: Errno.timedOut) { try blob.append([1]) }
        #expect(node.ledger.change(of: "b") == nil)
        fixture.objects.setFault { _ in nil }
        let reopened = try node.area.open("b")
        #expect(try reopened.readAll() == Array(bytes[..<5000]))
        try reopened.append(Array(bytes[5000...]))
        try reopened.synchronize(including: .name)
        try fixture.record("b", offset: 20_000, by: node)
        #expect(try node.area.open("b").readAll() == bytes)
    }

    @Test(
        "a storage that refuses bytes and one that cannot be reached cause different errors, even before the first object",
        arguments: [true, false])
    func kindOfError(hasStored: Bool) throws {
        let node = try fixture.node(Self.small)
        func store(_ name: String) throws {
            let blob = try node.area.create(name)
            try blob.append(content(1000))
            try blob.synchronize(including: nil)
        }
        if hasStored { try store("a") }
        for (error, expected) in [
            (ObjectError.refused(status: 403, code: "AccessDenied", message: ""), Errno.accessDenied),
            (.unavailable("SlowDown"), .timedOut),
        ] {
            fixture.objects.setFault { _ in .fail(error) }
            #expect(throws: expected) { try store("b") }
        }
        fixture.objects.setFault { _ in nil }
        try store("b")
    }

    @Test("objects of bytes that were truncated or not published are deleted at once")
    func discarding() throws {
        let node = try fixture.node(Self.small)
        do {
            let blob = try node.area.create("b")
            try blob.append(content(10_000))
            try blob.synchronize(including: nil)
            try blob.truncate(to: 5000)
            try blob.append(content(3000, seed: 2))
            try blob.synchronize(including: nil)
            #expect(try blob.readAll() == content(10_000)[..<5000] + content(3000, seed: 2))
        }
        try node.area.remove("b")
        node.area.close()
        #expect(fixture.dataObjects == [])
    }

    @Test("a sequential read needs few requests, and finds the bytes that follow already read")
    func readAhead() throws {
        let node = try fixture.node()
        try fixture.insertUpload("b", holder: node)
        let bytes = content(20 << 20)
        let blob = try node.area.create("b")
        try blob.append(bytes)
        try blob.synchronize(including: .name)
        try fixture.record("b", offset: Int64(bytes.count), by: node)
        #expect(try fixture.pieceSizes("b") == [8 << 20, 8 << 20, 4 << 20])
        let before = fixture.objects.operations.count
        #expect(try node.area.open("b").readAll(blockSize: 64 << 10) == bytes)
        let reads = fixture.objects.operations.count - before
        #expect(reads <= 16, "\(reads) requests")
        // A failed read in advance is repeated.
        let failures = Counter()
        fixture.objects.setFault { operation in
            if case .get = operation, failures.next() % 3 == 0 { .fail(.unavailable("test")) } else { nil }
        }
        let reader = try node.area.open("b")
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 1)
        defer { buffer.deallocate() }
        var read: [UInt8] = []
        while read.count < bytes.count {
            guard let count = try? reader.read(into: buffer, at: Int64(read.count)) else { continue }
            read.append(contentsOf: UnsafeRawBufferPointer(rebasing: buffer[..<count]))
        }
        #expect(read == bytes)
        // Reading one byte at any offset requests only this byte from the storage.
        fixture.objects.setFault { _ in nil }
        let other = try node.area.open("b")
        var byte: UInt8 = 0
        #expect(try withUnsafeMutableBytes(of: &byte) { try other.read(into: $0, at: 9_999_999) } == 1)
        #expect(byte == bytes[9_999_999])
        #expect(fixture.objects.operations.last == .get(key: try key(at: 9_999_999), 1_611_391..<1_611_392))
    }

    /// Stores a blob with one object, and reads its first bytes, so that the following bytes are read in advance.
    private func beginReading(_ name: String, of bytes: [UInt8], by node: AreaFixture.Node) throws -> any Blob {
        let blob = try node.area.open(name)
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 1)
        defer { buffer.deallocate() }
        for offset in [0, 64 << 10] {
            #expect(try blob.read(into: buffer, at: Int64(offset)) == buffer.count)
            #expect(buffer.elementsEqual(bytes[offset..<offset + buffer.count]))
        }
        return blob
    }

    @Test(
        "a read does not wait for reads in advance that have not begun because the storage stalls, or that have failed")
    func stalledReadAhead() throws {
        let node = try fixture.node()
        let bytes = content(4 << 20)
        let names = ["a", "b", "c"]
        for name in names {
            try fixture.insertUpload(name, holder: node)
            let blob = try node.area.create(name)
            try blob.append(bytes)
            try blob.synchronize(including: .name)
            try fixture.record(name, offset: Int64(bytes.count), by: node)
        }
        let hasEnded = Monitor(false)
        let requests = Counter()
        defer {
            hasEnded.withLock { $0 = true }
            hasEnded.notifyAll()
        }
        // The objects of two blobs stall after the bytes that the test reads first.
        fixture.objects.setFault { operation in
            guard case .get(let key, let range) = operation, !key.hasPrefix("data/c/"), range.lowerBound >= 320 << 10
            else { return nil }
            if range.lowerBound == 320 << 10 { requests.next() }
            hasEnded.waitForever { $0 ? () : nil }
            return .fail(.unavailable("test"))
        }
        let stalled = try ["a", "b"].map { try beginReading($0, of: bytes, by: node) }
        let areStalled: Bool? = pollUntil(within: .seconds(60)) { requests.value == 2 ? true : nil }
        #expect(areStalled == true)
        let copy = Monitor<[UInt8]?>(nil)
        let reader = try node.area.open("c")
        let thread = try WorkerThread(name: "reader") {
            let read = try? reader.readAll()
            copy.withLock { $0 = read ?? [] }
            copy.notifyAll()
        }
        let read = copy.wait(until: seconds(60)) { $0 }
        #expect(read == bytes)
        // Threads that wait for a request that fails do not wait for another one.
        let failures = Monitor<[Errno]>([])
        let reads = Counter()
        let threads = try stalled.map { blob in
            try WorkerThread(name: "reader") {
                let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 1)
                defer { buffer.deallocate() }
                do throws(Errno) {
                    var offset: Int64 = 128 << 10
                    while true {
                        reads.next()
                        offset += Int64(try blob.read(into: buffer, at: offset))
                    }
                } catch { failures.withLock { $0.append(error) } }
            }
        }
        // The fourth read of each blob waits.
        var equal = 0
        let areWaiting: Bool? = pollUntil(within: .seconds(60)) {
            equal = reads.value == 8 ? equal + 1 : 0
            return equal >= 50 ? true : nil
        }
        #expect(areWaiting == true)
        hasEnded.withLock { $0 = true }
        hasEnded.notifyAll()
        for thread in threads + [thread] { thread.join() }
        #expect(failures.withLock { $0 } == [.timedOut, .timedOut])
        #expect(requests.value == 2)
    }

    private func key(at offset: Int64) throws -> String {
        try fixture.run("SELECT object FROM onward.piece WHERE start <= $1 ORDER BY start DESC", [.integer(offset)])
            .text(0, 0) ?? ""
    }

    /// Discards the bytes, and compares them with ``content(_:seed:)`` of a piece.
    private final class Sink: ObjectStore {
        let expected: [UInt8]
        let stored = Atomic(0)
        let isDelayed: Bool
        private let identity = Monitor<[UInt8]?>(nil)

        init(_ expected: [UInt8], isDelayed: Bool = false) { (self.expected, self.isDelayed) = (expected, isDelayed) }

        func put(_ key: String, _ content: [UInt8], until deadline: Int64) throws(ObjectError) {
            if isDelayed { SystemClock.pause(nanoseconds: 1_000_000) }
            let isExpected = content.withUnsafeBytes { content in
                expected.withUnsafeBytes { expected in
                    guard let left = content.baseAddress, let right = expected.baseAddress else { return false }
                    return isDelayed || memcmp(left, right, content.count) == 0
                }
            }
            if !isExpected {
                throw .refused(status: 400, code: "", message: "")
            }
            stored.add(content.count, ordering: .relaxed)
        }

        func create(_ key: String, _ content: [UInt8], until deadline: Int64) throws(ObjectError) -> Bool {
            if key == PieceCollector.identityKey { identity.withLock { $0 = content } }
            return key == PieceCollector.identityKey
        }

        func get(
            _ key: String, _ range: Range<Int64>, into buffer: UnsafeMutableRawBufferPointer, until deadline: Int64
        ) throws(ObjectError) -> Int {
            guard let identity = identity.withLock({ $0 }) else { throw .notFound }
            buffer.copyBytes(from: identity)
            return identity.count
        }
        func delete(_ keys: [String]) throws(ObjectError) {}
        func list(prefix: String, after: String?, limit: Int) throws(ObjectError) -> [ObjectListing] { [] }
    }

    @Test(
        "an upload of 1 GiB needs the memory of a few pieces",
        .enabled(if: PostgreSQLCluster.isRequired, "takes long: make test-scale runs it"))
    func largeUpload() throws {
        let piece = content(8 << 20)
        let sink = Sink(piece)
        let node = try fixture.node(objects: sink)
        let blob = try node.area.create("b")
        for part in 0..<1024 {
            let start = (part % 8) << 20
            try blob.append(Array(piece[start..<start + (1 << 20)]))
        }
        try blob.synchronize(including: nil)
        #expect(sink.stored.load(ordering: .relaxed) == 1 << 30)
        #expect(node.area.peakMemory <= (4 * 8) << 20, "\(node.area.peakMemory)")
    }

    @Test("more uploads than fit into memory proceed, while others wait with unsent bytes")
    func shortMemory() throws {
        let limits = PieceLimits(maxSize: 64 << 10, maxInlineSize: 256, minMemory: 4096, memory: 256 << 10)
        let piece = content(64 << 10)
        let node = try fixture.node(limits, objects: Sink(piece, isDelayed: true))
        // Together these hold more than all memory.
        let idle = try (0..<80).map { index in
            let blob = try node.area.create("idle\(index)")
            try blob.append(Array(piece[..<3000]))
            return blob
        }
        let threads = try (0..<8).map { index in
            let blob = try node.area.create("b\(index)")
            return try WorkerThread(name: "writer") { () -> Void in
                for part in 0..<16 { try? blob.append(Array(repeating: piece[0], count: part == 0 ? 1 : 16 << 10)) }
            }
        }
        for thread in threads { thread.join() }
        #expect(node.area.peakMemory <= 256 << 10)
        withExtendedLifetime(idle) {}
    }

    @Test("memory for which a writer has waited, and which it does not use, is available to others")
    func unusedMemory() throws {
        let limits = PieceLimits(maxSize: 64 << 10, maxInlineSize: 256, minMemory: 4096, memory: 16 << 10)
        let node = try fixture.node(limits)
        let idle = try (0..<4).map { index in
            let blob = try node.area.create("idle\(index)")
            blob.awaitRoom()
            return blob
        }
        let blob = try node.area.create("b")
        let bytes = content(100)
        let count = pollUntil(within: .seconds(20)) { () -> Int? in
            let count = bytes.withUnsafeBytes { try? blob.write($0, at: 0) }
            if count == 0 { blob.awaitRoom() }
            return count == 0 ? nil : count
        }
        #expect(count == 100)
        // A writer that has lost its memory waits for other memory.
        try idle[0].append(bytes)
        #expect(try idle[0].readAll() == bytes)
    }
}
