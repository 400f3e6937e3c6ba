import HTTPSemantics
import ResumableUpload
import Testing

/// Uploads with the style `automatic`, for which the client selects the kind of creation.
@Suite struct ClientAutomaticTests {
    private static let large: Int64 = 5 << 20
    private static let versions: [Dialect] = [.interop5, .interop6, .interop7, .interop8, .rfc]

    private func asked(_ dialect: Dialect = .interop8) throws -> ClientUpload {
        var upload = ClientUpload.fresh(dialect, style: .automatic, method: .put, length: Self.large)
        let question = try upload.request()
        #expect(question.kind == .discover)
        #expect(question.resource == .target)
        return upload
    }

    /// The fields by which a target announces support for resumable uploads.
    private func support(_ dialect: Dialect, limits: String = "max-age=60") -> Fields {
        var fields: Fields = ["Upload-Limit": limits]
        if let version = dialect.interopVersion { fields.append("Upload-Draft-Interop-Version", "\(version)") }
        return fields
    }

    @Test(
        "small content and content of unknown length are sent with the first request",
        arguments: [0, 1, 4 << 20, nil] as [Int64?])
    func unasked(length: Int64?) throws {
        var upload = ClientUpload.fresh(style: .automatic, length: length)
        let request = try upload.request()
        #expect(request.kind == .create)
        #expect(request.fields["Upload-Complete"] == "?1")
    }

    @Test("CLI-26: large content is sent only after the upload resource was created", arguments: versions)
    func supported(dialect: Dialect) throws {
        var upload = try asked(dialect)
        upload.answer(204, support(dialect))
        let creation = try upload.request()
        #expect(creation.content == .empty)
        #expect(dialect.completeness(of: creation.fields) == false)
        upload.answer(201, dialect.head(complete: false), location: "/u/1")
        #expect(try upload.request().content == .range(from: 0, count: Self.large))
        upload.cut(sent: 1000)
        #expect(try upload.request().kind == .retrieve)
    }

    @Test(
        "a target that does not announce support receives all content in one request, not an empty creation first")
    func unsupported() throws {
        let answers: [(Status, Fields)] = [
            (204, [:]), (405, [:]), (404, support(.interop8)), (200, support(.interop7)),
            (200, ["Upload-Limit": "max-age=60"]), (200, support(.interop8, limits: "max-age=x; =")),
        ]
        for (status, fields) in answers {
            var upload = try asked()
            upload.answer(status, fields)
            let request = try upload.request()
            #expect(request.content == .range(from: 0, count: Self.large), "\(status) \(fields)")
            #expect(request.fields["Upload-Complete"] == "?1")
        }
    }

    @Test(
        "whether the target supports resumption stays unknown after rejected credentials and temporary errors",
        arguments: [(204, false), (404, false), (405, false), (501, false)] as [(Status, Bool?)]
            + [(401, nil), (403, nil), (407, nil), (503, nil)])
    func inconclusive(status: Status, expected: Bool?) throws {
        var upload = try asked()
        upload.answer(status, [:])
        #expect(try upload.request().kind == .create)
        #expect(upload.isResumptionSupported == expected)
    }

    @Test(
        "the content is sent even if the request for discovery gets no response",
        arguments: [ClientInterruption.connection, .stall])
    func unanswered(reason: ClientInterruption) throws {
        var upload = try asked()
        upload.cut(reason)
        #expect(try upload.request().content == .range(from: 0, count: Self.large))
    }

    @Test("CLI-17: content above max-size is rejected before content is sent; parts have at most max-append-size bytes")
    func limits() throws {
        var upload = try asked()
        upload.answer(204, support(.interop8, limits: "max-size=1000"))
        #expect(upload.failed() == .tooLarge(limit: 1000))

        upload = try asked()
        upload.answer(204, support(.interop8, limits: "max-append-size=1000"))
        #expect(try upload.request().content == .empty)
        upload.answer(201, Dialect.interop8.head(complete: false), location: "/u/1")
        #expect(try upload.request().content == .range(from: 0, count: 1000))
    }
}
