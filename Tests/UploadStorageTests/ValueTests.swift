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
