import HTTPSemantics
import ResumableUpload
import Testing

/// The effect of the responses that end an upload on the state machine of a client.
@Suite struct ClientResponseTests {
    private let v8 = Dialect.interop8

    @Test(
        "CLI-11: a final response that reports the upload as complete ends the upload, with any status",
        arguments: [200, 400, 409, 500, 503])
    func final(status: Int) throws {
        var upload = ClientUpload.fresh()
        _ = try upload.request()
        _ = upload.announce()
        upload.answer(Status(rawValue: status), v8.head(complete: true), sent: 10)
        #expect(upload.outcome()?.response.status.rawValue == status)
        #expect(upload.outcome()?.isResponseLost == false)
    }

    @Test("CLI-20: the Location of the final response is passed to the caller")
    func ownLocation() throws {
        var upload = ClientUpload.fresh()
        _ = try upload.request()
        _ = upload.announce()
        upload.answer(201, v8.head(complete: true), location: "/doc/1", sent: 100)
        #expect(upload.outcome()?.response.location?.uri == "/doc/1")
    }

    @Test(
        "CLI-34 CLI-23: a success without the completeness field of the version completes the upload",
        arguments: Dialect.allCases)
    func bare(dialect: Dialect) throws {
        for fields: Fields in [
            [:], dialect == .interop3 ? ["Upload-Complete": "?1"] : ["Upload-Incomplete": "?0"],
            [dialect.completenessField(true).name: "true"],
        ] {
            var upload = ClientUpload.fresh(dialect)
            _ = try upload.request()
            upload.answer(200, fields, sent: 100)
            #expect(upload.outcome() != nil)
            var append = try ClientUpload.appending(dialect)
            _ = try append.request()
            append.answer(204, fields, sent: 100)
            #expect(append.outcome() != nil)
        }
    }

    @Test("a successful response with ?0 or with an earlier offset does not complete the upload")
    func incomplete() throws {
        for fields in [v8.head(complete: false), v8.head(complete: false, offset: 40), v8.head(offset: 40)] {
            var upload = try ClientUpload.appending()
            _ = try upload.request()
            upload.answer(204, fields, sent: 100)
            #expect(upload.outcome() == nil)
            #expect(try upload.request().kind == (fields.contains("Upload-Offset") ? .append : .retrieve))
        }
    }

    @Test("CLI-23: without an upload resource an error status ends the upload", arguments: [400, 404, 500, 502, 504])
    func plainServer(status: Int) throws {
        var upload = ClientUpload.fresh()
        _ = try upload.request()
        upload.answer(Status(rawValue: status), sent: 100)
        #expect(upload.failed() == .refused(Status(rawValue: status)))
        #expect(upload.resumption == nil)
    }

    @Test("a careful creation that got no upload resource ends the upload")
    func noResource() throws {
        var upload = ClientUpload.fresh(style: .careful)
        _ = try upload.request()
        upload.answer(201, v8.head(complete: false))
        #expect(upload.failed() == .resumptionUnsupported(201))
    }

    @Test("a success without fields of the protocol ends an upload in parts, because the server does not support parts")
    func withoutResumption() throws {
        for (style, most) in [(CreationStyle.careful, nil), (.optimistic, 40 as Int64?)] {
            var upload = ClientUpload.fresh(style: style, maxRequestContentLength: most)
            _ = try upload.request()
            upload.answer(201, sent: most ?? 0)
            #expect(upload.failed() == .resumptionUnsupported(201) && upload.resumption == nil)
        }
    }

    @Test("an upload resource that must not be used ends a careful creation", arguments: [false, true])
    func unusable(isInsecure: Bool) throws {
        let relation = isInsecure ? ResolvedLocation.Relation.insecure : .otherOrigin
        var upload = ClientUpload.fresh(style: .careful)
        _ = try upload.request()
        upload.answer(201, v8.head(complete: false), location: "http://h/u", relation)
        #expect(upload.failed() == .locationUnusable(relation))
    }

    @Test("CLI-19: another Location in an incomplete final response ends the upload, and the first resource is deleted")
    func changed() throws {
        var upload = ClientUpload.fresh()
        _ = try upload.request()
        _ = upload.announce("/u/a")
        upload.answer(201, v8.head(complete: false), location: "/u/b", sent: 100)
        #expect(try upload.request().resource == .upload("/u/a"))
        upload.answer(204)
        #expect(upload.failed() == .locationChanged)
    }
}
