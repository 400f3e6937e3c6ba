import HTTPSemantics
import ResumableUpload
import Testing

@Suite struct DialectTests {
    @Test(
        "STF-10: the value of the version field must be an Integer Item",
        arguments: [
            ("3", .interop3), ("8", .interop8), ("08", .interop8), ("8;x", .interop8), ("\"8\"", nil), ("8.0", nil),
            ("8,8", nil), ("8, 8", nil), ("2", nil), ("9", nil), ("0", nil), ("-8", nil), ("+8", nil), ("99", nil),
            ("100", nil), ("abc", nil), ("", nil), ("999999999999999", nil), ("9223372036854775815", nil),
        ] as [(String, Dialect?)])
    func announced(value: String, expected: Dialect?) {
        #expect(Dialect(announcedBy: ["Upload-Draft-Interop-Version": value]) == expected)
    }

    @Test("STF-10: a version field with two lines is ignored")
    func announcedTwice() {
        let fields = Fields([("Upload-Draft-Interop-Version", "8"), ("Upload-Draft-Interop-Version", "8")])
        #expect(Dialect(announcedBy: fields) == nil)
    }

    @Test(
        "VER-03: responses to a request with a version use that version, contain its number, and include 104",
        arguments: Dialect.drafts)
    func named(dialect: Dialect) {
        for isAnnouncedWithoutVersion in [false, true] {
            let responses = UploadResponses(
                answering: dialect.request(), storedDialect: .interop4,
                isAnnouncedWithoutVersion: isAnnouncedWithoutVersion
            )
            #expect(responses.dialect == dialect)
            #expect(responses.isInterimResponseAllowed)
            let head = responses.announcement(location: "/u/1", limits: UploadLimits())
            #expect(head.fields.values("Upload-Draft-Interop-Version") == ["\(dialect.rawValue)"])
            #expect(
                responses.progress(offset: 1)?.fields["Upload-Draft-Interop-Version"]
                    == (dialect > .interop4 ? "\(dialect.rawValue)" : nil))
        }
    }

    @Test("VER-01: a request without a version gets no 104, and uses the dialect of the creation or the newest dialect")
    func unnamed() {
        let plain = UploadResponses(answering: [:])
        #expect(plain.dialect == .rfc)
        #expect(!plain.isInterimResponseAllowed)
        #expect(!plain.shouldEchoVersion)
        #expect(UploadResponses(answering: [:], storedDialect: .interop5).dialect == .interop5)
        let stored = UploadResponses(answering: [:], storedDialect: .interop5).appended(state: UploadState(offset: 1))
        #expect(!stored.fields.contains("Upload-Draft-Interop-Version"))
    }

    @Test(
        "VER-02: a request with an unsupported version gets no 104 in any configuration",
        arguments: ["99", "2", "abc", "9", "8.0", "100"])
    func unsupported(version: String) {
        for isAnnouncedWithoutVersion in [false, true] {
            let responses = UploadResponses(
                answering: ["Upload-Draft-Interop-Version": version],
                isAnnouncedWithoutVersion: isAnnouncedWithoutVersion)
            #expect(responses.dialect == .rfc)
            #expect(!responses.isInterimResponseAllowed)
        }
    }

    @Test("VER-04: in the version of the RFC a 104 contains no version")
    func published() {
        let responses = UploadResponses(answering: [:], storedDialect: .interop5, isAnnouncedWithoutVersion: true)
        #expect(responses.dialect == .rfc)
        #expect(responses.isInterimResponseAllowed)
        let head = responses.announcement(location: "/u/1", limits: UploadLimits())
        #expect(head.status == 104)
        #expect(!head.fields.contains("Upload-Draft-Interop-Version"))
    }

    @Test("INT-02: a request with HTTP/1.0 gets no interim response", arguments: Dialect.allCases)
    func http10(dialect: Dialect) {
        let responses = UploadResponses(
            answering: dialect.request(), version: .http10, isAnnouncedWithoutVersion: true)
        #expect(!responses.isInterimResponseAllowed)
    }

    @Test("VER-05: version 3 uses only Upload-Incomplete, and version 4 does not use it")
    func inverse() {
        #expect(Dialect.interop3.completeness(of: ["Upload-Incomplete": "?1"]) == false)
        #expect(Dialect.interop3.completeness(of: ["Upload-Incomplete": "?0"]) == true)
        #expect(Dialect.interop3.completeness(of: ["Upload-Complete": "?1"]) == nil)
        #expect(Dialect.interop4.completeness(of: ["Upload-Incomplete": "?1"]) == nil)
    }

    @Test(
        "VER-14: up to version 6 requests for retrieval and cancellation must not contain fields of the upload",
        arguments: Dialect.allCases, ["Upload-Offset", "Upload-Complete", "Upload-Incomplete", "Upload-Length"])
    func stateFieldsOnRetrieval(dialect: Dialect, name: String) {
        var fields = dialect.request()
        #expect(dialect.retrievalRefusal(fields: fields) == nil)
        fields.append(name, "0")
        // Version 6 is the first that forbids Upload-Length here.
        let isForbidden = name == "Upload-Length" ? dialect == .interop6 : dialect < .interop7
        #expect(dialect.retrievalRefusal(fields: fields) == (isForbidden ? .stateFieldsOnRetrieval : nil))
        #expect(UploadError.stateFieldsOnRetrieval.status(in: dialect) == 400)
    }

    @Test(
        "VER-15 APP-24 CAN-05: the status is 404, and for deactivated uploads 410 from version 7 on",
        arguments: Dialect.allCases)
    func gone(dialect: Dialect) {
        #expect(UploadError.notFound.status(in: dialect) == 404)
        #expect(UploadError.deactivated(reason: "canceled").status(in: dialect) == (dialect < .interop7 ? 404 : 410))
    }
}
