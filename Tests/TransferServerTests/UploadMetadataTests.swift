import HTTPSemantics
import Testing
import UploadStorage

@testable import TransferServer

@Suite("Upload-Metadata")
struct UploadMetadataTests {
    private func metadata(_ values: String...) -> UploadMetadata? {
        UploadMetadata(Fields(values.map { ("Upload-Metadata", $0) }))
    }

    @Test("Name and type are read from either pair of keys")
    func keys() throws {
        let tus = try #require(metadata("filename dGVzdC5iaW4=,filetype aW1hZ2UvcG5n"))
        #expect(tus.filename == "test.bin")
        #expect(tus.filetype == "image/png")
        let other = try #require(metadata("relativePath bnVsbA==,name w6TDtsO8,type dGV4dC9wbGFpbg=="))
        #expect(other.filename == "äöü")
        #expect(other.filetype == "text/plain")
        let both = try #require(metadata("name Yg==,filename YQ==,type Zg==,filetype ZQ=="))
        #expect(both.filename == "a")
        #expect(both.filetype == "e")
    }

    @Test("Spaces around pairs, several lines, keys without a value and other values are accepted")
    func forms() throws {
        for form in [
            ["filename YQ==, empty ,flag,binary //8="], ["filename YQ==", "flag"], ["flag, filename YQ=="],
        ] {
            let found = try #require(UploadMetadata(Fields(form.map { ("Upload-Metadata", $0) })))
            #expect(found.filename == "a")
            #expect(found.filetype == nil)
        }
        #expect(try #require(metadata("filename")).filename == nil)
    }

    @Test(
        "A malformed field is ignored entirely",
        arguments: [
            "", ",", "filename YQ==,", ",filename YQ==", "filename YQ==,,x", "filename YQ", "filename Y",
            "filename Y!==",
            "filename YQ== YQ==", "filename YQ==,filename Yg==", "filename YQ==,x =", "filename _w==", "filename //8=",
            "filename YQ==,type //8=", "filename=YQ==,x a", "filename YQ==,x YQ==\u{7F}",
            // The unused bits after the last byte are not zero (RFC 4648 section 3.5).
            "filename YR==", "filename YWJ=", "filename YQ==,x YR==",
        ])
    func malformed(value: String) {
        #expect(metadata(value) == nil)
    }

    @Test("The stored value has exactly the pairs that are used")
    func value() throws {
        let parsed = try #require(metadata("token c2VjcmV0,type aW1hZ2UvcG5n,name Yg==,filename YQ==,empty"))
        #expect(parsed.value == "filename YQ==,filetype aW1hZ2UvcG5n")
        #expect(metadata(try #require(parsed.value)) == parsed)
        let unusual = try #require(metadata("filename ,name w6TDtsO8"))
        #expect(metadata(try #require(unusual.value)) == unusual)
        #expect(try #require(metadata("token c2VjcmV0")).value == nil)
    }

    @Test("Only the used pairs of a well-formed field are stored, and other fields are unchanged")
    func stored() throws {
        let store = try UploadStore(
            catalog: MemoryCatalog(), area: MemoryBlobArea(), configuration: StoreConfiguration())
        defer { store.close() }
        let handler = FilesHandler(store: store)
        func stored(_ values: String...) -> Fields {
            let fields = Fields(
                [("If-Match", "\"a\""), ("If-Match", "\"b\"")] + values.map { ("upload-metadata", $0) })
            return handler.storedPart(of: fields)
        }
        let others: Fields = Fields([("If-Match", "\"a\""), ("If-Match", "\"b\"")])
        #expect(stored() == others)
        #expect(stored("token c2VjcmV0") == others)
        #expect(stored("filename YQ==,token !") == others)
        var expected = others
        expected.append("Upload-Metadata", "filename YQ==,filetype Yg==")
        #expect(stored("token c2VjcmV0,name YQ==", "type Yg==") == expected)
    }

    @Test("Without the field there is no metadata")
    func absent() {
        #expect(UploadMetadata([:]) == nil)
    }

    @Test("A name is used only if Content-Disposition has no name, and is sanitized in the same way")
    func names() {
        func name(_ disposition: String?, _ value: String) -> String? {
            FreeNames(directory: ["d"], disposition: disposition, metadata: metadata(value)).name(0)?.segments.last
        }
        #expect(name(nil, "filename YS50eHQ=") == "a.txt")
        #expect(name("attachment; filename=b.txt", "filename YS50eHQ=") == "b.txt")
        #expect(name("inline", "filename YS50eHQ=") == "a.txt")
        #expect(name("attachment; filename=\"..\"", "filename YS50eHQ=") == "a.txt")
        // The names are ../../etc/passwd, C:\x\y.txt, .htaccess, a<NUL>b.txt and CON.
        #expect(name(nil, "filename Li4vLi4vZXRjL3Bhc3N3ZA==") == "passwd")
        #expect(name(nil, "filename QzpceFx5LnR4dA==") == "y.txt")
        #expect(name(nil, "filename Lmh0YWNjZXNz") == "_htaccess")
        #expect(name(nil, "filename YQBiLnR4dA==") == "ab.txt")
        #expect(name(nil, "filename Q09O") == "_CON")
        #expect(name(nil, "filename Li4=")?.hasPrefix("upload-") == true)
        #expect(name(nil, "filename YQ==,x !")?.hasPrefix("upload-") == true)
    }

    @Test("A type is used only if Content-Type is missing or is the media type of a part")
    func types() {
        func type(_ contentType: String?, _ filetype: String) -> String? {
            var fields: Fields = ["Upload-Metadata": "filetype \(filetype)"]
            if let contentType { fields.append("Content-Type", contentType) }
            return FileFields.saved(of: fields)["Content-Type"]
        }
        #expect(type(nil, "aW1hZ2UvcG5n") == "image/png")
        #expect(type("application/partial-upload", "aW1hZ2UvcG5n") == "image/png")
        #expect(type("Application/Offset+Octet-Stream", "aW1hZ2UvcG5n") == "image/png")
        #expect(type("text/css", "aW1hZ2UvcG5n") == "text/css")
        // The types are no/type/at all, "image/png\r\nX: y" and application/partial-upload.
        #expect(type(nil, "bm8vdHlwZS9hdCBhbGw=") == nil)
        #expect(type(nil, "aW1hZ2UvcG5nDQpYOiB5") == nil)
        #expect(type(nil, "YXBwbGljYXRpb24vcGFydGlhbC11cGxvYWQ=") == nil)
        #expect(type(nil, "!") == nil)
    }
}
