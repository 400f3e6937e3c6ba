import HTTPSemantics
import ResumableUpload
import Testing

@Suite struct UploadFieldTests {
    @Test(
        "STF-01: Integers may have leading zeros, -0, white space and parameters",
        arguments: [
            ("5", 5), ("05", 5), ("005;a=b", 5), ("5;x", 5), ("0", 0), ("-0", 0), ("  5", 5), ("5 ", 5),
            ("999999999999999", 999_999_999_999_999),
        ] as [(String, Int64)])
    func integers(value: String, expected: Int64) {
        let fields: Fields = ["Upload-Offset": value]
        #expect(fields.uploadInteger("Upload-Offset") == expected)
    }

    @Test(
        "STF-02 STF-03 STF-04 STF-05: a value other than a non-negative Integer of 15 digits is ignored",
        arguments: [
            "+5", "5.0", "\"5\"", "?1", "five", ":NQ==:", "@5", "%\"5\"", "-5", "-1", "1000000000000000", "5 5", "5,5",
            "5;", "5;A=1", "0x5", "", "5abc", "(5)", "99999999999999999999",
        ])
    func voidIntegers(value: String) throws {
        let fields: Fields = ["Upload-Offset": value, "Upload-Length": value]
        #expect(fields.uploadInteger("Upload-Offset") == nil)
        #expect(fields.uploadInteger("Upload-Length") == nil)
        for dialect in Dialect.allCases {
            var request = dialect.append(complete: false, offset: nil)
            request.append("Upload-Offset", value)
            #expect(throws: UploadError.missingOffset) {
                try Append(dialect: dialect, fields: request, framing: .length(1))
            }
        }
    }

    @Test("STF-06: an Item on two lines or with a comma is ignored, even if both values are equal")
    func repeatedLines() {
        #expect(Fields([("Upload-Offset", "5"), ("Upload-Offset", "5")]).uploadInteger("Upload-Offset") == nil)
        #expect(Fields([("Upload-Complete", "?1"), ("upload-complete", "?1")]).uploadBoolean("Upload-Complete") == nil)
        #expect(Fields([("Upload-Complete", "?1, ?1")]).uploadBoolean("Upload-Complete") == nil)
        #expect(Fields().uploadInteger("Upload-Offset") == nil)
    }

    @Test(
        "STF-07: Upload-Complete is ?0 or ?1, with parameters or without",
        arguments: [
            ("?1", true), ("?0", false), ("?1;x", true), ("?1;p=2", true), ("?0;a=\"b\"", false), (" ?1 ", true),
            ("?2", nil), ("true", nil), ("1", nil), ("0", nil), ("", nil), ("?T", nil), ("? 1", nil), ("?1?", nil),
            ("false", nil), ("?1;", nil),
        ] as [(String, Bool?)])
    func booleans(value: String, expected: Bool?) {
        #expect((["Upload-Complete": value] as Fields).uploadBoolean("Upload-Complete") == expected)
        for dialect in Dialect.allCases where dialect != .interop3 {
            #expect(dialect.completeness(of: ["Upload-Complete": value]) == expected)
        }
    }

    @Test("STF-11: field names are case-insensitive")
    func caseInsensitive() {
        #expect((["upload-OFFSET": "7"] as Fields).uploadInteger("Upload-Offset") == 7)
        #expect(Dialect(announcedBy: ["UPLOAD-draft-interop-VERSION": "6"]) == .interop6)
    }

    @Test("XCO-01 XCO-02 VER-27: browsers may send the request fields and read the response fields")
    func crossOrigin() {
        #expect(
            Set(UploadFieldName.requestFields).isSuperset(of: [
                "Upload-Offset", "Upload-Complete", "Upload-Incomplete", "Upload-Length",
                "Upload-Draft-Interop-Version",
            ]))
        #expect(
            Set(UploadFieldName.responseFields).isSuperset(of: [
                "Upload-Offset", "Upload-Complete", "Upload-Incomplete", "Upload-Length", "Upload-Limit",
                "Upload-Draft-Interop-Version",
            ]))
    }
}
