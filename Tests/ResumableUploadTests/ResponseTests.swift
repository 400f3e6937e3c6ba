import HTTPSemantics
import ResumableUpload
import StructuredFields
import Testing

@Suite struct ResponseTests {
    private let state = UploadState(offset: 25, length: 100, limits: UploadLimits(maxSize: 1000, maxAge: 60))

    @Test("CRE-02 CRE-03: the announcement has one location and the limits", arguments: Dialect.allCases)
    func announcement(dialect: Dialect) {
        let head = dialect.responses.announcement(location: "/u/1", limits: state.limits)
        #expect(head.status == 104)
        #expect(head.fields.values("Location") == ["/u/1"])
        #expect(head.fields["Upload-Limit"]?.contains("max-size=1000") == true)
    }

    @Test(
        "CRE-21 APP-11 APP-12 VER-18: progress responses have the offset, never a location", arguments: Dialect.allCases
    )
    func progress(dialect: Dialect) throws {
        guard dialect >= .interop5 else {
            #expect(dialect.responses.progress(offset: 10) == nil)
            return
        }
        let head = try #require(dialect.responses.progress(offset: 10))
        #expect(head.status == 104)
        #expect(head.fields["Upload-Offset"] == "10")
        #expect(!head.fields.contains("Location"))
    }

    @Test("INT-04: interim responses have no fields about content", arguments: Dialect.allCases)
    func interim(dialect: Dialect) {
        let heads = [
            dialect.responses.announcement(location: "/u/1", limits: state.limits),
            dialect.responses.progress(offset: 1),
        ]
        for head in heads.compactMap({ $0 }) {
            for name in ["Content-Length", "Transfer-Encoding", "Content-Type"] { #expect(!head.fields.contains(name)) }
        }
    }

    @Test(
        "CRE-04 CRE-05 CRE-06 CRE-07 VER-10 VER-23: the response to a created part has location, limits and offset",
        arguments: Dialect.allCases)
    func created(dialect: Dialect) {
        let response = dialect.responses.created(location: "/u/1", state: state)
        #expect(response.status == 201)
        #expect(response.fields.values("Location") == ["/u/1"])
        #expect(response.fields["Upload-Limit"]?.contains("max-size=1000") == true)
        #expect(response.fields["Upload-Offset"] == "25")
        #expect(response.fields.completeness(in: dialect) == false)
    }

    @Test("CRE-11: the location is the same string in every message of a creation", arguments: Dialect.allCases)
    func sameLocation(dialect: Dialect) {
        let announced = dialect.responses.announcement(location: "https://h/u/1", limits: state.limits)
        let created = dialect.responses.created(location: "https://h/u/1", state: state)
        #expect(announced.fields["Location"] == created.fields["Location"])
    }

    @Test(
        "APP-02 VER-12 VER-23: the response to an appended part has the offset, but no location",
        arguments: Dialect.allCases)
    func appended(dialect: Dialect) {
        let response = dialect.responses.appended(state: state)
        #expect(response.status == (dialect < .interop7 ? 201 : 204))
        #expect(response.fields.completeness(in: dialect) == false)
        #expect(response.fields["Upload-Offset"] == "25")
        #expect(!response.fields.contains("Location"))
    }

    @Test(
        "CRE-12 VER-11 VER-23: the Location of the response to a complete creation depends on the version",
        arguments: Dialect.allCases)
    func location(dialect: Dialect) {
        let answer = Response(status: 201, fields: ["location": "/doc/1"], content: [1])
        let response = dialect.responses.finished(answer, state: state, uploadLocation: "/u/1")
        #expect(response.status == 201)
        #expect(response.content.bytes == [1])
        #expect(response.fields.completeness(in: dialect) == true)
        #expect(response.fields["Upload-Offset"] == "25")
        if dialect < .interop7 {
            #expect(response.fields.values("Location") == ["/u/1"])
            #expect(response.fields.values("Content-Location") == ["/doc/1"])
        } else {
            #expect(response.fields.values("Location") == ["/doc/1"])
            #expect(!response.fields.contains("Content-Location"))
        }
        let without = dialect.responses.finished(Response(status: 200), state: state, uploadLocation: "/u/1")
        #expect(without.fields["Location"] == (dialect < .interop7 ? "/u/1" : nil))
        let redirection = Response(status: 303, fields: ["Location": "/doc/1"])
        let redirected = dialect.responses.finished(redirection, state: state, uploadLocation: "/u/1")
        #expect(redirected.fields["Location"] == "/doc/1")
    }

    @Test(
        "APP-03 APP-04: an append that completes the upload returns the answer of the target",
        arguments: Dialect.allCases)
    func finishedAppend(dialect: Dialect) {
        let answer = Response(
            status: 200, fields: ["Location": "/doc/1", "ETag": "\"a\"", "Upload-Offset": "3"], content: [7, 8])
        let response = dialect.responses.finished(answer, state: state, uploadLocation: nil)
        #expect(response.status == 200)
        #expect(response.content.bytes == [7, 8])
        #expect(response.fields["Location"] == "/doc/1")
        #expect(response.fields["ETag"] == "\"a\"")
        #expect(response.fields.values("Upload-Offset") == ["25"])
        #expect(response.fields.completeness(in: dialect) == true)
    }

    @Test(
        "OFF-01 OFF-02 OFF-03 OFF-05 OFF-06 OFF-08 CCH-01 CMP-04 VER-13 VER-26: a retrieval returns the state",
        arguments: Dialect.allCases)
    func retrieved(dialect: Dialect) {
        let response = dialect.responses.retrieved(state: state)
        #expect(response.status == 204)
        #expect(response.content == .bytes([]))
        #expect(response.fields["Upload-Offset"] == "25")
        #expect(response.fields["Upload-Length"] == "100")
        #expect(response.fields["Upload-Limit"]?.contains("max-size=1000") == true)
        #expect(response.fields["Cache-Control"] == "no-store")
        #expect(!response.fields.contains("ETag"))
        #expect(response.fields.completeness(in: dialect) == false)
        let completedState = UploadState(offset: 100, length: 100, phase: .complete(Response(status: 201)))
        #expect(dialect.responses.retrieved(state: completedState).fields.completeness(in: dialect) == true)
    }

    @Test("OFF-04: the response to a retrieval has no length if no length was declared", arguments: Dialect.allCases)
    func retrievedWithoutLength(dialect: Dialect) {
        #expect(!dialect.responses.retrieved(state: UploadState(offset: 5)).fields.contains("Upload-Length"))
    }

    @Test("CAN-01 CAN-04 VER-16: the response to a cancellation has the status 204", arguments: Dialect.allCases)
    func canceled(dialect: Dialect) {
        #expect(dialect.responses.canceled().status == 204)
        #expect(dialect.responses.canceled().content.bytes == [])
    }

    @Test("OFF-12: the response for an unknown upload has no offset", arguments: Dialect.allCases)
    func unknown(dialect: Dialect) {
        let response = dialect.responses.refused(.notFound)
        #expect(response.status == 404)
        #expect(!response.fields.contains("Upload-Offset"))
    }

    @Test(
        "CRE-23: the response to a failure reports the upload as incomplete, and has the offset at which to resume",
        arguments: Dialect.allCases)
    func failed(dialect: Dialect) {
        let response = dialect.responses.failed(ProblemDetails(status: 507), offset: 50)
        #expect(response.status == 507)
        #expect(response.fields["Cache-Control"] == "no-store")
        #expect(response.fields["Upload-Offset"] == "50")
        #expect(response.fields.completeness(in: dialect) == false)
        #expect(!dialect.responses.failed(ProblemDetails(status: 503), offset: nil).fields.contains("Upload-Offset"))
    }

    @Test(
        "VER-05 STF-08: each response uses the completeness field of its version, and canonical values",
        arguments: Dialect.allCases)
    func canonical(dialect: Dialect) throws {
        for response in Self.finalResponses(dialect, state) {
            let fields = response.fields
            #expect(!fields.contains(dialect == .interop3 ? "Upload-Complete" : "Upload-Incomplete"))
            for name in ["Upload-Offset", "Upload-Complete", "Upload-Incomplete", "Upload-Length"] {
                let values = fields.values(name)
                #expect(values.count <= 1)
                for value in values { #expect(try Item(parsing: value).serialized() == value) }
            }
            for value in fields.values("Upload-Limit") {
                #expect(try OrderedDictionary(parsing: value).serialized() == value)
            }
            #expect(fields.firstInvalid == nil)
        }
    }

    @Test(
        "VER-03: every response contains the version of the request, or no version if the request had none",
        arguments: Dialect.allCases)
    func echo(dialect: Dialect) {
        for response in Self.finalResponses(dialect, state) {
            let expected = dialect == .rfc ? [] : ["\(dialect.rawValue)"]
            #expect(response.fields.values("Upload-Draft-Interop-Version") == expected)
        }
    }

    @Test("RED-01 OFF-13: no response redirects", arguments: Dialect.allCases)
    func noRedirection(dialect: Dialect) {
        for response in Self.finalResponses(dialect, state) { #expect(!response.status.isRedirection) }
    }

    @Test("VER-20: every refusal reports the upload as incomplete", arguments: Dialect.allCases)
    func marked(dialect: Dialect) {
        for error in UploadError.samples {
            #expect(dialect.responses.refused(error, offset: 1).fields.completeness(in: dialect) == false)
        }
    }

    private static func finalResponses(_ dialect: Dialect, _ state: UploadState) -> [Response] {
        let responses = dialect.responses
        return [
            responses.created(location: "/u/1", state: state), responses.appended(state: state),
            responses.finished(Response(status: 200), state: state, uploadLocation: "/u/1"),
            responses.retrieved(state: state), responses.canceled(),
            responses.discovered(limits: state.limits, allow: [.post]),
            responses.failed(ProblemDetails(status: 500), offset: 25),
        ] + UploadError.samples.map { responses.refused($0, offset: 25, limits: state.limits) }
    }
}
