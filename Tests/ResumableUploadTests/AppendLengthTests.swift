import HTTPSemantics
import ResumableUpload
import Testing

@Suite struct AppendLengthTests {
    private let known = UploadState(offset: 40, length: 100)

    @Test("LEN-02: the Upload-Length of an append must be equal to the recorded length", arguments: Dialect.allCases)
    func upload(dialect: Dialect) {
        for length in [41, 99, 101] as [Int64] {
            let decision = dialect.decide(
                dialect.append(complete: false, offset: 40, length: length), .length(1), on: known)
            #expect((decision.refusal?.isInconsistentLength == true) == (dialect >= .interop5))
        }
        let same = dialect.decide(dialect.append(complete: false, offset: 40, length: 100), .length(1), on: known)
        #expect(same.plan?.length == 100)
        #expect(same.plan?.isLengthDetermined == false)
    }

    @Test(
        "LEN-03: an append that completes the upload must end at the recorded length, in every version",
        arguments: Dialect.allCases)
    func completing(dialect: Dialect) {
        for content in [0, 59, 61] as [Int64] {
            let decision = dialect.decide(dialect.append(complete: true, offset: 40), .length(content), on: known)
            #expect(decision.refusal?.isInconsistentLength == true)
        }
        #expect(dialect.decide(dialect.append(complete: true, offset: 40), .length(60), on: known).plan != nil)
    }

    @Test(
        "LEN-03: an append that does not complete the upload must not exceed the recorded length",
        arguments: Dialect.allCases)
    func part(dialect: Dialect) {
        let beyond = dialect.decide(dialect.append(complete: false, offset: 40), .length(61), on: known)
        #expect(beyond.refusal?.isInconsistentLength == true)
        #expect(dialect.decide(dialect.append(complete: false, offset: 40), .length(60), on: known).plan != nil)
    }

    @Test(
        "LEN-05 LEN-07: chunked content is refused from the first byte that exceeds the length",
        arguments: Dialect.allCases)
    func overrun(dialect: Dialect) throws {
        for complete in [true, false] {
            let state = UploadState(offset: 5, length: 10)
            let plan = try #require(
                dialect.decide(dialect.append(complete: complete, offset: 5), .chunked, on: state).plan)
            var counter = ContentCounter(plan)
            #expect(counter.receive(5) == .accept)
            #expect(counter.receive(1) == .exceedsLength(10))
            #expect(counter.received == 5)
        }
    }

    @Test(
        "LEN-06: the response to an overrun has no offset, because the upload no longer exists",
        arguments: Dialect.allCases)
    func invalid(dialect: Dialect) {
        for error in [UploadError.lengthExceeded(length: 10), .deactivated(reason: "overrun"), .notFound] {
            #expect(error.isEndOfUpload)
            let response = dialect.responses.refused(error, offset: 10)
            #expect(response.status.isClientError)
            #expect(!response.fields.contains("Upload-Offset"))
            #expect(response.fields.completeness(in: dialect) == false)
        }
        #expect(!UploadError.mismatchingOffset(expected: 1, provided: 2).isEndOfUpload)
        #expect(!UploadError.uploadTooLarge(limit: 1).isEndOfUpload)
    }

    @Test(
        "LEN-08: chunked content that completes the upload but ends before its length is reported as short",
        arguments: Dialect.allCases)
    func short(dialect: Dialect) throws {
        let plan = try #require(
            dialect.decide(
                dialect.append(complete: true, offset: 5), .chunked, on: UploadState(offset: 5, length: 10)
            ).plan)
        var counter = ContentCounter(plan)
        #expect(counter.receive(3) == .accept)
        #expect(counter.end() == .short(length: 10, received: 8))
    }

    @Test("LEN-09: an append may declare the length", arguments: Dialect.allCases)
    func late(dialect: Dialect) {
        let state = UploadState(offset: 40)
        let declared = dialect.decide(dialect.append(complete: false, offset: 40, length: 50), .length(1), on: state)
        #expect(declared.plan?.length == (dialect >= .interop5 ? 50 : nil))
        #expect(declared.plan?.isLengthDetermined == (dialect >= .interop5))
        let derived = dialect.decide(dialect.append(complete: true, offset: 40), .length(10), on: state)
        #expect(derived.plan?.length == (dialect >= .interop4 ? 50 : nil))
        #expect(derived.plan?.isLengthDetermined == (dialect >= .interop4))
        let none = dialect.decide(dialect.append(complete: false, offset: 40), .length(10), on: state)
        #expect(none.plan != nil)
        #expect(none.plan?.length == nil)
    }

    @Test(
        "LEN-09: the length that an append declares must be consistent with its own content",
        arguments: Dialect.allCases)
    func lateAndWrong(dialect: Dialect) {
        let state = UploadState(offset: 40)
        let decision = dialect.decide(dialect.append(complete: true, offset: 40, length: 50), .length(9), on: state)
        #expect((decision.refusal?.isInconsistentLength == true) == (dialect >= .interop5))
        let part = dialect.decide(dialect.append(complete: false, offset: 40, length: 50), .length(11), on: state)
        #expect((part.refusal?.isInconsistentLength == true) == (dialect >= .interop5))
    }

    @Test("LEN-10: a length below the offset is refused", arguments: Dialect.allCases)
    func belowOffset(dialect: Dialect) {
        for framing in [MessageFraming.length(0), .chunked] {
            let decision = dialect.decide(
                dialect.append(complete: false, offset: 40, length: 30), framing, on: UploadState(offset: 40))
            #expect((decision.refusal?.isInconsistentLength == true) == (dialect >= .interop5))
        }
    }

    @Test("LEN-13: the offset is checked before lengths and limits", arguments: Dialect.allCases)
    func offsetFirst(dialect: Dialect) {
        let state = UploadState(offset: 40, length: 100, limits: UploadLimits(maxSize: 100, maxAppendSize: 10))
        let decision = dialect.decide(
            dialect.append(complete: true, offset: 41, length: 7), .length(5000), on: state)
        #expect(decision.refusal == .mismatchingOffset(expected: 40, provided: 41))
        #expect(decision.refusal?.status(in: dialect) == 409)
    }

    @Test("LEN-14: an invalid Upload-Length of an append is ignored", arguments: Dialect.allCases)
    func void(dialect: Dialect) {
        var fields = dialect.append(complete: false, offset: 40)
        fields.append("Upload-Length", "-7")
        #expect(dialect.decide(fields, .length(1), on: known).plan?.length == 100)
    }

    @Test("LIM-01 LEN-09: a length above max-size is refused when it is declared", arguments: Dialect.allCases)
    func aboveMaxSize(dialect: Dialect) {
        let state = UploadState(offset: 40, limits: UploadLimits(maxSize: 100))
        let declared = dialect.decide(dialect.append(complete: false, offset: 40, length: 101), .length(1), on: state)
        #expect((declared.refusal == .uploadTooLarge(limit: 100)) == (dialect >= .interop5))
        let derived = dialect.decide(dialect.append(complete: true, offset: 40), .length(61), on: state)
        #expect(derived.refusal == .uploadTooLarge(limit: 100))
    }

    @Test("VER-25: version 4 records the length of an interrupted complete creation and enforces it")
    func version4() throws {
        let plan = try #require(
            Dialect.interop4.creation(complete: true, framing: .length(10)).decide(limits: UploadLimits()).createdPlan)
        let cut = UploadState(offset: 4, length: plan.length)
        let wrong = Dialect.interop4.decide(Dialect.interop4.append(complete: true, offset: 4), .length(7), on: cut)
        #expect(wrong.refusal?.status(in: .interop4) == 400)
        let right = Dialect.interop4.decide(Dialect.interop4.append(complete: true, offset: 4), .length(6), on: cut)
        #expect(right.plan != nil)
    }
}
