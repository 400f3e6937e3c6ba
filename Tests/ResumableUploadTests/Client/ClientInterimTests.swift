import HTTPSemantics
import ResumableUpload
import Testing

/// The effect of interim responses on the state machine of a client.
@Suite struct ClientInterimTests {
    @Test("CLI-21: a 104 with an upload resource opens the gate and makes the upload resumable")
    func opens() throws {
        var upload = ClientUpload.fresh()
        #expect(try upload.request().shouldAwaitInterim)
        #expect(upload.announce() == .openGate)
        #expect(upload.resumption?.uri == "/u/1")
        #expect(upload.resumption?.length == 100)
    }

    @Test(
        "CLI-02: a client of a draft version ignores a 104 with another version or without a version",
        arguments: [nil, "7", "8.0", "\"8\"", "-8", "8, 8"])
    func version(value: String?) throws {
        var upload = ClientUpload.fresh()
        _ = try upload.request()
        let fields = value.map { ["Upload-Draft-Interop-Version": $0] as Fields } ?? [:]
        #expect(upload.announce("/u/1", .sameOrigin, fields) == .proceed)
        #expect(upload.resumption == nil)
    }

    @Test("CLI-02: a client of the RFC accepts a 104 with any version or without a version", arguments: [nil, "7"])
    func published(value: String?) throws {
        var upload = ClientUpload.fresh(.rfc)
        _ = try upload.request()
        let fields = value.map { ["Upload-Draft-Interop-Version": $0] as Fields } ?? [:]
        #expect(upload.announce("/u/1", .sameOrigin, fields) == .openGate)
    }

    @Test("CLI-22: other interim responses are ignored, and a 104 may be repeated any number of times")
    func others() throws {
        var upload = ClientUpload.fresh()
        _ = try upload.request()
        for status in [100, 101, 102, 103, 105, 199] {
            let head = ClientResponseHead(
                status: Status(rawValue: status), fields: Dialect.interop8.interim(offset: 5),
                location: ResolvedLocation(uri: "/u/9", relation: .sameOrigin))
            #expect(upload.interim(head, now: 0) == .proceed)
        }
        #expect(upload.resumption == nil)
        for _ in 0..<50 { _ = upload.announce() }
        #expect(upload.resumption?.uri == "/u/1")
    }

    @Test("CLI-19: another upload resource in a second 104 ends the upload, and the first is deleted")
    func changed() throws {
        var upload = ClientUpload.fresh()
        _ = try upload.request()
        _ = upload.announce()
        #expect(upload.announce("/u/2") == .abort)
        upload.cut()
        let request = try upload.request()
        #expect(request.kind == .cancel && request.resource == .upload("/u/1"))
        upload.answer(204)
        #expect(upload.failed() == .locationChanged)
        #expect(upload.resumption == nil)
    }

    @Test("CLI-17: a max-size below the length ends the upload, and the upload resource is deleted")
    func maxSize() throws {
        var upload = ClientUpload.fresh()
        _ = try upload.request()
        #expect(upload.announce("/u/1", .sameOrigin, Dialect.interop8.interim(limit: "max-size=99")) == .abort)
        upload.cut()
        #expect(try upload.request().kind == .cancel)
        upload.answer(204)
        #expect(upload.failed() == .tooLarge(limit: 99))
    }

    @Test("CLI-16: a request with content beyond max-append-size is aborted, and parts of that size follow")
    func maxAppendSize() throws {
        var upload = ClientUpload.fresh()
        _ = try upload.request()
        #expect(upload.announce("/u/1", .sameOrigin, Dialect.interop8.interim(limit: "max-append-size=40")) == .abort)
        upload.cut()
        let request = try upload.request()
        #expect(request.kind == .append)
        #expect(request.content == .range(from: 0, count: 40))
        #expect(request.fields["Upload-Complete"] == "?0")
    }

    @Test("CLI-16: if some content was sent before the abort, the offset is retrieved first")
    func maxAppendSizeLate() throws {
        var upload = ClientUpload.fresh()
        _ = try upload.request()
        #expect(upload.announce("/u/1", .sameOrigin, Dialect.interop8.interim(limit: "max-append-size=40")) == .abort)
        upload.cut(sent: 10)
        #expect(try upload.request().kind == .retrieve)
    }

    @Test("CLI-07 CLI-33: the client accepts offsets from interim responses, and a decreasing one ends the upload")
    func offsets() throws {
        var upload = ClientUpload.fresh()
        _ = try upload.request()
        _ = upload.announce()
        #expect(upload.announce(nil, .sameOrigin, Dialect.interop8.interim(offset: 40)) == .proceed)
        #expect(upload.acknowledged == 40 && upload.resumption?.acknowledged == 40)
        #expect(upload.announce(nil, .sameOrigin, Dialect.interop8.interim(offset: 30)) == .abort)
        upload.cut()
        #expect(try upload.request().kind == .cancel)
        upload.answer(204)
        #expect(upload.failed() == .offsetLost(acknowledged: 40, reported: 30))
    }

    @Test("an offset beyond the length ends the upload")
    func impossible() throws {
        var upload = ClientUpload.fresh()
        _ = try upload.request()
        _ = upload.announce()
        #expect(upload.announce(nil, .sameOrigin, Dialect.interop8.interim(offset: 101)) == .abort)
        upload.cut()
        _ = try upload.request()
        upload.answer(204)
        #expect(upload.failed() == .offsetImpossible(101))
    }

    @Test("STF-13: invalid offsets in interim responses are ignored", arguments: ["5.0", "-5", "\"5\"", "5, 6", ""])
    func void(value: String) throws {
        var upload = ClientUpload.fresh()
        _ = try upload.request()
        _ = upload.announce()
        var fields = Dialect.interop8.interim()
        fields.append("Upload-Offset", value)
        #expect(upload.announce(nil, .sameOrigin, fields) == .proceed)
        #expect(upload.acknowledged == 0)
    }

    @Test(
        "an upload resource that must not be used is ignored, and the upload can still succeed",
        arguments: [ResolvedLocation.Relation.insecure, .otherOrigin])
    func unusable(relation: ResolvedLocation.Relation) throws {
        var upload = ClientUpload.fresh()
        _ = try upload.request()
        #expect(upload.announce("/u/1", relation) == .openGate)
        #expect(upload.resumption == nil)
        upload.answer(200, Dialect.interop8.head(complete: true), sent: 100)
        #expect(upload.outcome()?.response.status == 200)
    }

    @Test("RED-03: if another origin is allowed, an upload resource there is used without credentials")
    func otherOrigin() throws {
        var upload = ClientUpload.fresh(isOtherOriginAllowed: true)
        #expect(try upload.request().hasCredentials)
        _ = upload.announce("https://other/u", .otherOrigin)
        upload.cut(sent: 50)
        let request = try upload.request()
        #expect(request.resource == .upload("https://other/u"))
        #expect(!request.hasCredentials)
    }

    @Test("the Location of a 104 to an append is ignored")
    func appending() throws {
        var upload = try ClientUpload.appending()
        _ = try upload.request()
        #expect(upload.announce("/u/2") == .proceed)
        #expect(upload.resumption?.uri == "/u/1")
    }
}
