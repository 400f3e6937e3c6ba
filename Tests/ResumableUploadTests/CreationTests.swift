import HTTPSemantics
import ResumableUpload
import Testing

@Suite struct CreationTests {
    private let unlimited = UploadLimits()

    @Test("CRE-01: a request with a completeness field creates an upload resource", arguments: Dialect.allCases)
    func creates(dialect: Dialect) {
        for complete in [true, false] {
            for framing in [MessageFraming.length(100), .chunked, .none] {
                let plan = dialect.creation(complete: complete, framing: framing).decide(limits: unlimited).createdPlan
                #expect(plan?.completion == dialect.expectedCompletion(complete))
                #expect(plan?.start == 0)
            }
        }
    }

    @Test(
        "CRE-09: a request without a completeness field is plain, and its content is complete",
        arguments: Dialect.allCases)
    func plain(dialect: Dialect) {
        let sized = dialect.creation(complete: nil, framing: .length(10)).decide(limits: unlimited).plainPlan
        #expect(sized?.completion == .atEnd)
        #expect(sized?.length == 10)
        let chunked = dialect.creation(complete: nil, framing: .chunked).decide(limits: unlimited).plainPlan
        #expect(chunked?.completion == .atEnd)
        #expect(chunked?.length == nil)
        #expect(chunked?.isLengthDetermined == false)
    }

    @Test("CRE-10: a plain request that is shorter than its Upload-Length is refused", arguments: Dialect.allCases)
    func truncated(dialect: Dialect) throws {
        let sized = dialect.creation(complete: nil, framing: .length(9), length: 10).decide(limits: unlimited)
        #expect(sized.refusal?.isInconsistentLength == true)
        // With chunked framing the difference is detected at the end.
        let plan = try #require(
            dialect.creation(complete: nil, framing: .chunked, length: 10).decide(limits: unlimited).plainPlan)
        var counter = ContentCounter(plan)
        #expect(counter.receive(9) == .accept)
        #expect(counter.end() == .short(length: 10, received: 9))
    }

    @Test("CRE-13 LEN-11: empty content can be a complete representation", arguments: Dialect.allCases)
    func emptyRepresentation(dialect: Dialect) throws {
        for length in [nil, 0] as [Int64?] {
            for framing in [MessageFraming.none, .length(0), .chunked] {
                let decision = dialect.creation(complete: true, framing: framing, length: length)
                    .decide(limits: UploadLimits(minAppendSize: 10))
                let plan = try #require(decision.createdPlan)
                #expect(ContentCounter(plan).end() == .complete(length: 0))
            }
        }
    }

    @Test("CRE-14 LIM-08: empty content can be a part, even below min-append-size", arguments: Dialect.allCases)
    func emptyPart(dialect: Dialect) throws {
        let decision = dialect.creation(complete: false, framing: .length(0))
            .decide(limits: UploadLimits(minSize: 10, minAppendSize: 10))
        let plan = try #require(decision.createdPlan)
        #expect(ContentCounter(plan).end() == .part)
        #expect(plan.length == nil)
    }

    @Test("CRE-17: Upload-Length is recorded from version 5 on", arguments: Dialect.allCases)
    func recordsUploadLength(dialect: Dialect) {
        let plan = dialect.creation(complete: false, framing: .length(10), length: 100).decide(limits: unlimited)
            .createdPlan
        #expect(plan?.length == (dialect >= .interop5 ? 100 : nil))
        #expect(plan?.isLengthDetermined == (dialect >= .interop5))
    }

    @Test(
        "CRE-18 VER-25: Content-Length of complete content is recorded from version 4 on", arguments: Dialect.allCases)
    func recordsContentLength(dialect: Dialect) {
        let plan = dialect.creation(complete: true, framing: .length(100)).decide(limits: unlimited).createdPlan
        #expect(plan?.length == (dialect >= .interop4 ? 100 : nil))
        let part = dialect.creation(complete: false, framing: .length(100)).decide(limits: unlimited).createdPlan
        #expect(part != nil)
        #expect(part?.length == nil)
    }

    @Test(
        "CRE-20 VER-01: complete content needs no upload resource if no 104 announces the resource",
        arguments: Dialect.allCases
    )
    func unannounced(dialect: Dialect) {
        let completeDecision = dialect.creation(complete: true, framing: .length(10)).decide(
            limits: unlimited, announces: false)
        // Up to version 6 the final response must contain the URL of the upload resource.
        #expect((completeDecision.createdPlan != nil) == (dialect < .interop7))
        #expect(completeDecision.plan?.completion == .atEnd)
        let part = dialect.creation(complete: false, framing: .length(10)).decide(limits: unlimited, announces: false)
        #expect(part.createdPlan != nil)
    }

    @Test("CRE-28: Upload-Offset is ignored in a creation", arguments: Dialect.allCases)
    func offsetIgnored(dialect: Dialect) {
        let fields = dialect.request(complete: false, offset: 7)
        let creation = Creation(dialect: dialect, isComplete: false, framing: .length(3), fields: fields)
        #expect(creation.decide(limits: unlimited).createdPlan?.start == 0)
    }

    @Test("CRE-29: chunked content of unknown length is complete at its end", arguments: Dialect.allCases)
    func chunkedRepresentation(dialect: Dialect) throws {
        let plan = try #require(
            dialect.creation(complete: true, framing: .chunked).decide(limits: unlimited).createdPlan)
        var counter = ContentCounter(plan)
        for _ in 0..<3 { #expect(counter.receive(5) == .accept) }
        #expect(counter.end() == .complete(length: 15))
    }

    @Test("LEN-01: Content-Length of complete content and Upload-Length must be equal", arguments: Dialect.allCases)
    func disagreeing(dialect: Dialect) {
        for length in [9, 11] as [Int64] {
            let decision = dialect.creation(complete: true, framing: .length(10), length: length)
                .decide(limits: unlimited)
            #expect((decision.refusal?.isInconsistentLength == true) == (dialect >= .interop5))
        }
        let agreeing = dialect.creation(complete: true, framing: .length(10), length: 10).decide(limits: unlimited)
        #expect(agreeing.createdPlan != nil)
    }

    @Test("LEN-01: an incomplete part must not exceed Upload-Length, but may end there", arguments: Dialect.allCases)
    func partPassesLength(dialect: Dialect) {
        let beyond = dialect.creation(complete: false, framing: .length(11), length: 10).decide(limits: unlimited)
        #expect((beyond.refusal?.isInconsistentLength == true) == (dialect >= .interop5))
        let equal = dialect.creation(complete: false, framing: .length(10), length: 10).decide(limits: unlimited)
        #expect(equal.createdPlan?.completion == dialect.expectedCompletion(false))
    }

    @Test("LEN-14: an invalid Upload-Length is ignored", arguments: Dialect.allCases)
    func voidLength(dialect: Dialect) {
        var fields = dialect.request(complete: true)
        fields.append("Upload-Length", "\"10\"")
        let creation = Creation(dialect: dialect, isComplete: true, framing: .length(5), fields: fields)
        #expect(creation.decide(limits: unlimited).createdPlan?.length == (dialect >= .interop4 ? 5 : nil))
    }
}
