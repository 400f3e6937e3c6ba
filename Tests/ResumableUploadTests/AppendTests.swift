import HTTPSemantics
import ResumableUpload
import Testing

@Suite struct AppendTests {
    @Test("APP-01 OFF-11: content at the upload's offset is accepted", arguments: Dialect.allCases)
    func accepts(dialect: Dialect) {
        for complete in [true, false] {
            for framing in [MessageFraming.length(5), .chunked, .none] {
                let plan = dialect.decide(
                    dialect.append(complete: complete, offset: 40), framing, on: UploadState(offset: 40)
                ).plan
                #expect(plan?.start == 40)
                #expect(plan?.completion == dialect.expectedCompletion(complete))
            }
        }
    }

    @Test("APP-05 VER-21: an append at another offset is refused with the current offset", arguments: Dialect.allCases)
    func mismatch(dialect: Dialect) {
        for offset in [0, 39, 41, 999_999_999_999_999] as [Int64] {
            let decision = dialect.decide(
                dialect.append(complete: false, offset: offset), .length(1), on: UploadState(offset: 40))
            #expect(decision.refusal == .mismatchingOffset(expected: 40, provided: offset))
        }
    }

    @Test("APP-09: an append without content can complete the upload", arguments: Dialect.allCases)
    func finishesEmpty(dialect: Dialect) throws {
        for length in [nil, 40] as [Int64?] {
            for framing in [MessageFraming.none, .length(0), .chunked] {
                let state = UploadState(offset: 40, length: length)
                let plan = try #require(
                    dialect.decide(dialect.append(complete: true, offset: 40), framing, on: state).plan)
                #expect(ContentCounter(plan).end() == .complete(length: 40))
            }
        }
    }

    @Test("APP-10: an empty append that does not complete the upload changes nothing", arguments: Dialect.allCases)
    func emptyPart(dialect: Dialect) throws {
        let plan = try #require(
            dialect.decide(dialect.append(complete: false, offset: 40), .length(0), on: UploadState(offset: 40)).plan)
        #expect(ContentCounter(plan).end() == .part)
        #expect(!plan.isLengthDetermined)
    }

    @Test("APP-15: Upload-Offset is required", arguments: Dialect.allCases)
    func missingOffset(dialect: Dialect) {
        let decision = dialect.decide(
            dialect.append(complete: false, offset: nil), .length(1), on: UploadState(offset: 0))
        #expect(decision.refusal == .missingOffset)
        #expect(UploadError.missingOffset.status(in: dialect) == 400)
    }

    @Test(
        "APP-16 VER-06 VER-07: the meaning of an append without a completeness field depends on the version",
        arguments: Dialect.allCases)
    func missingCompleteness(dialect: Dialect) {
        let decision = dialect.decide(dialect.append(offset: 40), .length(1), on: UploadState(offset: 40))
        switch dialect {
        case .interop3: #expect(decision.plan?.completion == .atEnd)
        case .interop4, .interop5, .interop6:
            #expect(decision.plan?.completion == dialect.expectedCompletion(false))
        case .interop7, .interop8, .rfc: #expect(decision.refusal == .missingCompleteness)
        }
        #expect(UploadError.missingCompleteness.status(in: dialect) == 400)
    }

    @Test("APP-16: an invalid completeness field never completes the upload", arguments: Dialect.allCases)
    func invalidCompleteness(dialect: Dialect) {
        for value in ["1", "true", "?2", "?1, ?1", ""] {
            var fields = dialect.append(offset: 40)
            fields.append(dialect == .interop3 ? "Upload-Incomplete" : "Upload-Complete", value)
            let decision = dialect.decide(fields, .length(1), on: UploadState(offset: 40))
            #expect(decision.plan?.completion != .atEnd)
            #expect((decision.refusal == .missingCompleteness) == (dialect < .interop4 || dialect > .interop6))
        }
    }

    @Test("APP-17 VER-08 VER-09: the media type is required from version 6 on", arguments: Dialect.allCases)
    func mediaType(dialect: Dialect) {
        let types = [
            nil, "application/octet-stream", "text/plain", "application/partial-upload, application/partial-upload",
            "application/partial-uploads", "partial-upload", "",
        ]
        for type in types {
            let fields = dialect.request(complete: false, offset: 40, mediaType: type)
            let decision = dialect.decide(fields, .length(1), on: UploadState(offset: 40))
            if dialect < .interop6 {
                #expect(decision.plan != nil)
            } else {
                #expect(decision.refusal == .unsupportedMediaType)
            }
        }
        let response = dialect.responses.refused(.unsupportedMediaType)
        #expect(response.status == 415)
        #expect(response.fields["Accept-Patch"] == "application/partial-upload")
    }

    @Test("APP-18: the media type is case-insensitive, and its parameters are ignored", arguments: Dialect.allCases)
    func mediaTypeForms(dialect: Dialect) {
        for type in ["Application/Partial-Upload; x=y", "application/partial-upload;charset=\"a b\""] {
            let fields = dialect.request(complete: false, offset: 40, mediaType: type)
            #expect(dialect.decide(fields, .length(1), on: UploadState(offset: 40)).plan != nil)
        }
    }

    @Test("APP-22: an append with a content coding is refused", arguments: Dialect.allCases)
    func contentCoding(dialect: Dialect) {
        var fields = dialect.append(complete: false, offset: 40)
        fields.append("Content-Encoding", "gzip")
        #expect(
            dialect.decide(fields, .length(1), on: UploadState(offset: 40)).refusal == .contentCodingOnAppend)
        let response = dialect.responses.refused(.contentCodingOnAppend, offset: 40)
        #expect(response.status == 415)
        #expect(response.fields["Accept-Encoding"] == "identity")
    }

    @Test("APP-15 APP-17: the media type is checked first, then the required fields, then the offset")
    func orderOfHead() {
        let broken = Dialect.interop8.request(mediaType: "text/plain")
        #expect(
            Dialect.interop8.decide(broken, .length(1), on: UploadState(offset: 40)).refusal == .unsupportedMediaType)
        let bare = Dialect.interop8.append(offset: nil)
        #expect(Dialect.interop8.decide(bare, .length(1), on: UploadState(offset: 40)).refusal == .missingOffset)
        let elsewhere = Dialect.interop8.append(offset: 3)
        #expect(
            Dialect.interop8.decide(elsewhere, .length(1), on: UploadState(offset: 40)).refusal == .missingCompleteness)
    }

    @Test(
        "APP-25 LEN-12: large offsets and lengths do not overflow", arguments: Dialect.allCases,
        [1 << 31, 1 << 32, 1 << 40, (1 << 49) - 1] as [Int64])
    func large(dialect: Dialect, offset: Int64) throws {
        let state = UploadState(offset: offset)
        let plan = try #require(
            dialect.decide(dialect.append(complete: true, offset: offset), .length(7), on: state).plan)
        var counter = ContentCounter(plan)
        #expect(counter.receive(7) == .accept)
        #expect(counter.end() == .complete(length: offset + 7))
        for content in [.max, .max - offset + 1, 999_999_999_999_999] as [Int64] {
            for complete in [true, false] {
                let refusal = dialect.decide(
                    dialect.append(complete: complete, offset: offset), .length(content), on: state
                ).refusal
                #expect(refusal == .uploadTooLarge(limit: 999_999_999_999_999))
            }
        }
    }

    @Test(
        "VER-22: an upload that was created in one version can be continued in any other version",
        arguments: Dialect.allCases, Dialect.allCases)
    func otherDialect(creator: Dialect, dialect: Dialect) throws {
        let created = try #require(
            creator.creation(complete: false, framing: .length(10)).decide(limits: UploadLimits()).createdPlan)
        let state = UploadState(offset: 10, length: created.length)
        let plan = try #require(
            dialect.decide(dialect.append(complete: true, offset: 10), .length(5), on: state).plan)
        var counter = ContentCounter(plan)
        #expect(counter.receive(5) == .accept)
        #expect(counter.end() == .complete(length: 15))
    }
}
