import ObjectStorage
import SystemCalls
import TestSupport
import Testing

@testable import ClusterStorage
@testable import UploadStorage

/// Tests that a copy of a store is compared with what the object storage has stored.
@Suite(.enabled(if: PostgreSQLCluster.isInstalled, "\(PostgreSQLCluster.requirement)"))
struct CopyVerificationTests {
    /// An object storage that confirms objects, and stores other bytes.
    private struct CorruptingStore: ForwardingObjectStore {
        let objects: MemoryObjectStore

        func put(_ key: String, _ content: [UInt8], until deadline: Int64) throws(ObjectError) {
            try objects.put(key, key.hasPrefix("data/") ? content.map { $0 ^ 1 } : content)
        }
    }

    @Test("a file whose bytes the storage has not stored is not copied", arguments: [false, true])
    func corruption(_ isCorrupt: Bool) throws {
        let (from, to) = (try AreaFixture(), try AreaFixture())
        let source = try from.node()
        let target = try to.node(objects: isCorrupt ? CorruptingStore(objects: to.objects) : nil)
        let blob = try source.area.create("a")
        try blob.append(content(200_000))
        let name = try #require(PublishedName(path: "f"))
        try source.publish("a", as: name)
        withExtendedLifetime(blob) {}
        var copy = StoreCopy(
            from: StoreCopy.Place(catalog: source.catalog, area: source.area, time: 0),
            to: StoreCopy.Place(catalog: target.catalog, area: target.area, time: 0))
        let report = try copy.run()
        #expect(report.files == (isCorrupt ? 0 : 1))
        #expect(
            report.problems == (isCorrupt ? ["f: \(StoreError.invalidState("the copy of f has another SHA-256"))"] : [])
        )
        #expect(try to.count("onward.name WHERE blob IS NOT NULL") == (isCorrupt ? 0 : 1))
    }
}
