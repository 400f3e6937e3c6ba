import HTTPSemantics
import ResumableUpload
import Testing

@Suite struct UploadLimitParsingTests {
    @Test(
        "STF-14 STF-15 STF-16: unknown keys are ignored, a wrong type invalidates all keys, a key's last value applies",
        arguments: [
            ("max-size=10, foo=(1 2)", UploadLimits(maxSize: 10)),
            ("max-size=10, max-age=1.5", nil),
            ("max-size=1, max-size=20", UploadLimits(maxSize: 20)),
            ("max-size=\"10\"", nil),
            ("max-size", nil),
            ("min-append-size=(5)", nil),
            ("min-size=-1", nil),
            ("max-size=10;x=1, min-append-size=5", UploadLimits(maxSize: 10, minAppendSize: 5)),
            ("max-size=10, ,", nil),
            ("min-size=0", UploadLimits(minSize: 0)),
            ("expires=5", UploadLimits()),
            ("MAX-SIZE=5", nil),
        ])
    func limits(value: String, expected: UploadLimits?) {
        #expect(UploadLimits(parsing: ["Upload-Limit": value], dialect: .interop8) == expected)
    }

    @Test("the lines of the field are combined; without the field there are no limits")
    func lines() {
        let fields: Fields = ["Upload-Limit": "max-size=1", "upload-limit": "max-age=2"]
        #expect(UploadLimits(parsing: fields, dialect: .interop8) == UploadLimits(maxSize: 1, maxAge: 2))
        #expect(UploadLimits(parsing: [:], dialect: .interop8) == nil)
    }

    @Test("in interop version 6 the key `expires` is accepted for the lifetime, too")
    func expires() {
        #expect(
            UploadLimits(parsing: ["Upload-Limit": "expires=5"], dialect: .interop6) == UploadLimits(maxAge: 5))
        #expect(
            UploadLimits(parsing: ["Upload-Limit": "max-age=7, expires=5"], dialect: .interop6)
                == UploadLimits(maxAge: 7))
    }
}
