import ObjectStorage
import SystemCalls
import TestSupport
import Testing
import UploadStorage

@testable import ClusterStorage

/// Tests generated histories of one blob: writes, truncations, synchronizations, commits, failures of the storage and
/// crashes of nodes. The bytes are compared with an array.
@Suite(.serialized, .enabled(if: PostgreSQLCluster.isInstalled, Comment(rawValue: PostgreSQLCluster.requirement)))
struct ObjectBlobHistoryTests {
    /// The blob as one node sees it, and what the database has to contain.
    private final class History {
        let fixture: AreaFixture
        let limits: PieceLimits
        var generator: SeededGenerator
        var node: AreaFixture.Node
        var blob: any Blob
        var bytes: [UInt8] = []
        /// The bytes that were committed last.
        var recorded: [UInt8] = []
        var synchronized: Int = 0
        var crashed: [AreaFixture.Node] = []
        /// The operations so far, for the message of a failure.
        var log: [String] = []

        init(_ fixture: AreaFixture, seed: UInt64) throws {
            self.fixture = fixture
            var generator = SeededGenerator(seed: seed)
            var limits = PieceLimits(maxSize: 4096, maxInlineSize: 256, minMemory: 128, memory: 64 << 10)
            limits.maxListed = generator.pick([1, 2, 3, 1024])
            (self.limits, self.generator) = (limits, generator)
            node = try fixture.node(limits)
            try fixture.insertUpload("b", holder: node)
            blob = try node.area.create("b")
        }

        func step() throws {
            switch Int.random(in: 0..<20, using: &generator) {
            case 0..<8: try append()
            case 8..<12: try synchronize()
            case 12..<15: try record()
            case 15: try truncate()
            case 16, 17: try compare()
            case 18: failNext()
            default: try crash()
            }
        }

        private func append() throws {
            let sizes = [1...40, 1...500, 1...500, 1...6000, 4096...20_000]
            let count = Int.random(in: generator.pick(sizes), using: &generator)
            log.append("append \(count)")
            let part = (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
            do { try blob.append(part) } catch { return try reopen() }
            bytes += part
        }

        private func synchronize() throws {
            log.append("synchronize")
            do { try blob.synchronize(including: .name) } catch { return try reopen() }
            synchronized = bytes.count
        }

        /// Commits the registered pieces, and as offset all bytes that they contain, or fewer.
        private func record() throws {
            let offset = generator.oneIn(3) ? Int.random(in: 0...synchronized, using: &generator) : synchronized
            if offset < recorded.count { return }
            log.append("record \(offset)")
            if let change = node.ledger.change(of: "b") {
                if change.pieces.end < offset, !change.pieces.isEmpty {
                    Issue.record("the pieces end before \(offset)")
                }
                node.ledger.rejected(change)
            }
            try fixture.record("b", offset: Int64(offset), by: node)
            recorded = Array(bytes[..<offset])
        }

        private func truncate() throws {
            let size = Int.random(in: recorded.count...bytes.count, using: &generator)
            log.append("truncate \(size)")
            do { try blob.truncate(to: Int64(size)) } catch { return try reopen() }
            bytes.removeLast(bytes.count - size)
            synchronized = min(synchronized, size)
        }

        private func compare() throws {
            log.append("compare")
            let offset = Int.random(in: 0...bytes.count, using: &generator)
            do {
                let read = try blob.readAll(from: Int64(offset), blockSize: Int.random(in: 1...9000, using: &generator))
                #expect(read == Array(bytes[offset...]))
            } catch { return try reopen() }
            #expect(try blob.size() == bytes.count)
        }

        /// Makes the next requests to the storage fail.
        private func failNext() {
            let count = Int.random(in: 1...3, using: &generator)
            let fault: MemoryObjectStore.Fault = generator.pick([
                .fail(.unavailable("test")), .loseResponse, .postpone,
            ])
            log.append("fail \(count) \(fault)")
            let requests = Counter()
            fixture.objects.setFault { operation in
                if case .list = operation { return nil }
                return requests.next() <= count ? fault : nil
            }
        }

        /// Ends the node, and lets another one open the upload.
        private func crash() throws {
            log.append("crash")
            fixture.objects.setFault { _ in nil }
            crashed.append(node)
            node = try fixture.node(limits)
            if generator.oneIn(2) { try fixture.end(crashed[crashed.count - 1]) }
            if generator.oneIn(2) { fixture.objects.performPostponed() }
            if generator.oneIn(3) { _ = try fixture.collector().collect() }
            try reopen()
        }

        /// Opens the blob as the store does: bytes after the offset in the row are removed.
        private func reopen() throws {
            log.append("reopen")
            fixture.objects.setFault { _ in nil }
            blob = try node.area.open("b")
            let size = try blob.size()
            #expect(size >= recorded.count)
            if size > recorded.count { try blob.truncate(to: Int64(recorded.count)) }
            bytes = recorded
            synchronized = recorded.count
            #expect(try blob.readAll() == bytes)
        }

        func finish() throws {
            fixture.objects.setFault { _ in nil }
            fixture.objects.performPostponed()
            do { try blob.synchronize(including: nil) } catch { try reopen() }
            synchronized = bytes.count
            try fixture.record("b", offset: Int64(bytes.count), by: node)
            #expect(try blob.readAll() == bytes)
            let other = try fixture.node(limits)
            #expect(try other.area.open("b").readAll(blockSize: 777) == bytes)
            // Only what the rows name remains once all other sessions have ended.
            for node in crashed + [node] {
                // Bytes that were truncated can still be on their way to the storage.
                node.area.close()
                try fixture.end(node)
            }
            _ = try fixture.collector().collect()
            #expect(try fixture.dataObjects == fixture.namedObjects())
            #expect(try other.area.open("b").readAll() == bytes)
        }
    }

    @Test(
        "no recorded byte changes or is lost, and nothing else remains, in generated histories",
        arguments: (1...(PostgreSQLCluster.isRequired ? 25 : 2)).map { UInt64($0) } + [SeededGenerator.runSeed])
    func histories(_ seed: UInt64) throws {
        let history = try History(AreaFixture(), seed: seed)
        do {
            for _ in 0..<120 { try history.step() }
            try history.finish()
        } catch {
            Issue.record("\(error) after \(history.log.suffix(30))")
        }
    }
}
