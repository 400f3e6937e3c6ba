import HTTPSemantics
import ResumableUpload
import TestSupport
import Testing

@testable import UploadStorage

@Suite struct ValueTests {
    @Test("SEC-14: an upload id has one text form, and its description does not reveal it")
    func uploadID() throws {
        let id = UploadID()
        #expect(UploadID(parsing: id.text) == id)
        #expect(id.text.utf8.count == 32)
        #expect(!id.description.contains(id.text.prefix(6)) && "\(id)".hasPrefix("upload:"))
        #expect(UploadID() != UploadID())
        #expect(UploadID(bytes: id.bytes) == id)
    }

    @Test(
        "SEC-14: other texts are refused as ids",
        arguments: [
            "", "0", "..", "../../etc/passwd", String(repeating: "A", count: 32), String(repeating: "0", count: 33),
            String(repeating: "0", count: 31) + "g", String(repeating: "0", count: 31) + "é",
        ])
    func noUploadID(_ text: String) { #expect(UploadID(parsing: text) == nil) }

    @Test(
        "names that could leave the root are refused",
        arguments: [
            [], [""], ["."], [".."], ["a", ".."], ["a/b"], ["a\0"], ["a", ""], [String(repeating: "x", count: 256)],
        ])
    func noPublishedName(_ segments: [String]) {
        #expect(PublishedName(segments: segments) == nil)
    }

    @Test func publishedNames() throws {
        let name = try #require(PublishedName(segments: ["a", "b", "ü"]))
        #expect(name.path == "a/b/ü")
        #expect(name.directory.appending("ü") == name)
        #expect(PublishedName.Directory(segments: []) == .root)
    }

    @Test func savedValuesAreReadBackUnchanged() throws {
        var upload = NewUpload.testing(length: 12, digests: [.sha256, .sha512], expiresAt: 99)
        upload.limits = UploadLimits(maxSize: 1, minSize: 2, maxAppendSize: 3, minAppendSize: 4, maxAge: 5)
        upload.dialect = .interop6
        upload.fields = Fields([("A", "1"), ("B", "ü"), ("A", "")])
        #expect(try NewUpload(savedBytes: upload.savedBytes) == upload)
        let response = Response(status: 201, fields: ["ETag": "\"x\""], content: [0, 255, 10])
        #expect(try Response(savedBytes: response.savedBytes) == response)
        let intent = PublicationIntent(
            name: try name("a/b"), replaced: nil, identity: "7", response: response, refused: Response(status: 409)
        )
        #expect(try PublicationIntent(savedBytes: intent.savedBytes) == intent)
    }

    @Test("after a failed commit, a row shows an intent, a withdrawal, an end or a removal, and no other change")
    func madeChanges() throws {
        let row = CatalogRow.testing(3)
        let id = row.id
        let removal = CatalogChange.Removal(id: id, epoch: 2)
        let file = FileRecord(name: "a", principal: "p", size: 3)
        func intent(_ path: String) throws -> PublicationIntent {
            PublicationIntent(
                name: try name(path), replaced: nil, identity: "1", response: Response(status: 201),
                refused: Response(status: 409))
        }
        func completion(_ status: Status) -> CatalogChange {
            .complete(
                CatalogChange.Completion(
                    id: id, epoch: 2, offset: 3, response: Response(status: status), expiresAt: 1, file: nil,
                    upload: row.upload))
        }
        func invalidation(_ reason: String) -> CatalogChange {
            .invalidate(
                CatalogChange.Invalidation(id: id, epoch: 2, reason: reason, expiresAt: 1, upload: row.upload))
        }
        func applying(_ change: CatalogChange) -> CatalogRow {
            var result = row
            result.apply(change)
            return result
        }
        // Each change is shown by its own row only: not by the row before it, by no row, or by the row after another one.
        let shown: [CatalogChange] = [
            .recordIntent(id, epoch: 2, try intent("a")), .recordIntent(id, epoch: 2, try intent("b")),
            .withdraw(id, epoch: 2), completion(201), completion(409), invalidation("lost"), invalidation("expired"),
        ]
        for (number, change) in shown.enumerated() {
            #expect(!change.isMade(in: row) && !change.isMade(in: nil), "\(change)")
            for (other, made) in shown.enumerated() {
                #expect(change.isMade(in: applying(made)) == (number == other), "\(change) after \(made)")
            }
        }
        let removals: [CatalogChange] = [.delete([removal]), .recordFile(file, ending: removal)]
        for change in removals {
            #expect(change.isMade(in: nil) && !change.isMade(in: row), "\(change)")
            for made in shown { #expect(!change.isMade(in: applying(made)), "\(change) after \(made)") }
        }
        // These changes can be repeated, or their rows do not show them.
        let advance = CatalogChange.Advance(id: id, epoch: 2, offset: 3, length: nil, digestStates: [])
        let others: [CatalogChange] = [
            .insert(row), .advance(advance), .markProcessing(id, epoch: 2), .removeFinished(expiredBy: 9, limit: 1),
            .recordFile(file, ending: nil), .removeFiles(["a"]), .recordTime(LifetimeClock.Mark(time: 1, wall: 2)),
            .limitExpiry(to: 1, limit: 1), .probe, .outbox(.remove([1])), .reporting(completion(201), []),
            .naming(completion(201), .retained(key: "k", description: [], blob: row.blob, size: 3)),
        ]
        let rows: [CatalogRow?] = [nil, row] + (shown + others).map { applying($0) }
        for change in others {
            for row in rows { #expect(!change.isMade(in: row), "\(change) in \(String(describing: row))") }
        }
    }

    @Test("decoding changed and truncated saved forms never crashes", arguments: [1 as UInt64, 2, 3])
    func savedFormsAreChecked(_ seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let original = NewUpload.testing(length: 12, digests: [.sha256]).savedBytes
        for _ in 0..<2000 {
            var bytes = original
            for _ in 0..<Int.random(in: 1...4, using: &generator) {
                bytes[Int.random(in: bytes.indices, using: &generator)] = .random(in: 0...255, using: &generator)
            }
            if Bool.random(using: &generator) { bytes.removeLast(Int.random(in: 1..<bytes.count, using: &generator)) }
            _ = try? NewUpload(savedBytes: bytes)
            _ = try? Response(savedBytes: bytes)
            _ = try? PublicationIntent(savedBytes: bytes)
        }
    }
}
