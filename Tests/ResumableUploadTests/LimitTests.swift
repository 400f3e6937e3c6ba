import HTTPSemantics
import ResumableUpload
import StructuredFields
import TestSupport
import Testing

@Suite struct LimitTests {
    @Test("LIM-01: a length above max-size is refused at creation", arguments: Dialect.allCases)
    func maxSizeAtCreation(dialect: Dialect) {
        let limits = UploadLimits(maxSize: 100)
        for complete in [true, false, nil] as [Bool?] {
            let sized = dialect.creation(complete: complete, framing: .length(101)).decide(limits: limits)
            #expect(sized.refusal == .uploadTooLarge(limit: 100))
        }
        let declared = dialect.creation(complete: false, framing: .length(1), length: 101).decide(limits: limits)
        #expect((declared.refusal == .uploadTooLarge(limit: 100)) == dialect.isUploadLengthRead)
        let chunked = dialect.creation(complete: nil, framing: .chunked, length: 101).decide(limits: limits)
        #expect(chunked.refusal == .uploadTooLarge(limit: 100))
        #expect(dialect.creation(complete: true, framing: .length(100)).decide(limits: limits).createdPlan != nil)
    }

    @Test("LIM-02: a 413 contains the limits", arguments: Dialect.allCases)
    func announcedWithRefusal(dialect: Dialect) {
        for error in [UploadError.uploadTooLarge(limit: 100), .appendTooLarge(limit: 10)] {
            let response = dialect.responses.refused(error, limits: UploadLimits(maxSize: 100, maxAppendSize: 10))
            #expect(response.status == 413)
            #expect(response.fields["Upload-Limit"] == "max-size=100, max-append-size=10")
        }
    }

    @Test("LIM-03 SEC-11: content of unknown length is refused when it exceeds max-size", arguments: Dialect.allCases)
    func maxSizeWhileStreaming(dialect: Dialect) throws {
        let plan = try #require(
            dialect.creation(complete: true, framing: .chunked).decide(limits: UploadLimits(maxSize: 100)).createdPlan)
        var counter = ContentCounter(plan)
        #expect(counter.receive(100) == .accept)
        #expect(counter.receive(1) == .exceedsMaxSize(100))
        #expect(counter.received == 100)
        let state = UploadState(offset: 60, limits: UploadLimits(maxSize: 100))
        let append = try #require(
            dialect.decide(dialect.append(complete: false, offset: 60), .chunked, on: state).plan)
        counter = ContentCounter(append)
        #expect(counter.receive(41) == .exceedsMaxSize(100))
    }

    @Test("LIM-04: an append above max-append-size is refused", arguments: Dialect.allCases)
    func maxAppendSize(dialect: Dialect) throws {
        let state = UploadState(offset: 5, limits: UploadLimits(maxAppendSize: 10))
        for complete in [true, false] {
            let fields = dialect.append(complete: complete, offset: 5)
            #expect(dialect.decide(fields, .length(11), on: state).refusal == .appendTooLarge(limit: 10))
            #expect(dialect.decide(fields, .length(10), on: state).plan != nil)
            var counter = ContentCounter(try #require(dialect.decide(fields, .chunked, on: state).plan))
            #expect(counter.receive(10) == .accept)
            #expect(counter.receive(1) == .exceedsMaxContent(10, accepted: 0))
            #expect(counter.received == 10)
        }
    }

    @Test("LIM-05: max-append-size limits creations, too", arguments: Dialect.allCases)
    func maxAppendSizeAtCreation(dialect: Dialect) throws {
        let limits = UploadLimits(maxAppendSize: 10)
        for complete in [true, false] {
            let decision = dialect.creation(complete: complete, framing: .length(11)).decide(limits: limits)
            #expect(decision.refusal == .appendTooLarge(limit: 10))
            let plan = dialect.creation(complete: complete, framing: .chunked).decide(limits: limits).createdPlan
            #expect(plan?.maxContent == 10)
        }
    }

    @Test("LIM-06: an incomplete part below min-append-size is refused", arguments: Dialect.allCases)
    func minAppendSize(dialect: Dialect) {
        let limits = UploadLimits(minAppendSize: 10)
        let state = UploadState(offset: 5, limits: limits)
        for size in [0, 9] as [Int64] {
            let decision = dialect.decide(dialect.append(complete: false, offset: 5), .length(size), on: state)
            #expect(decision.refusal == .appendTooSmall(limit: 10))
        }
        #expect(dialect.decide(dialect.append(complete: false, offset: 5), .length(10), on: state).plan != nil)
        let creation = dialect.creation(complete: false, framing: .length(9)).decide(limits: limits)
        #expect(creation.refusal == .appendTooSmall(limit: 10))
        #expect(UploadError.appendTooSmall(limit: 10).status(in: dialect) == 400)
    }

    @Test("LIM-07: a part that completes the upload may be below min-append-size", arguments: Dialect.allCases)
    func minAppendSizeExemption(dialect: Dialect) {
        let state = UploadState(offset: 5, limits: UploadLimits(minAppendSize: 10))
        for framing in [MessageFraming.none, .length(0), .length(1), .chunked] {
            #expect(
                dialect.decide(dialect.append(complete: true, offset: 5), framing, on: state).plan?.completion == .atEnd
            )
        }
        let creation = dialect.creation(complete: true, framing: .length(1)).decide(limits: state.limits)
        #expect(creation.createdPlan != nil)
    }

    @Test("LIM-09: content below min-size is accepted without resumption", arguments: Dialect.allCases)
    func minSize(dialect: Dialect) {
        let limits = UploadLimits(minSize: 1000, maxAppendSize: 5)
        #expect(dialect.creation(complete: true, framing: .length(10)).decide(limits: limits).plainPlan != nil)
        #expect(dialect.creation(complete: true, framing: .length(999)).decide(limits: limits).plainPlan != nil)
        let offered = UploadLimits(minSize: 1000)
        #expect(dialect.creation(complete: true, framing: .length(1000)).decide(limits: offered).createdPlan != nil)
        #expect(dialect.creation(complete: true, framing: .chunked).decide(limits: offered).createdPlan != nil)
        #expect(dialect.creation(complete: false, framing: .length(10)).decide(limits: offered).createdPlan != nil)
    }

    @Test(
        "LIM-13 LIM-16 LIM-18: discovery reports the limits and the media type of appends", arguments: Dialect.allCases)
    func discovery(dialect: Dialect) {
        let limits = UploadLimits(maxSize: 100, maxAge: 60)
        let response = dialect.responses.discovered(limits: limits, allow: [.post, .options])
        #expect(response.status == 204)
        #expect(response.content == .bytes([]))
        #expect(response.fields["Allow"] == "POST, OPTIONS")
        #expect(response.fields["Accept-Patch"] == "application/partial-upload")
        let created = dialect.responses.created(location: "/u/1", state: UploadState(offset: 0, limits: limits))
        #expect(response.fields["Upload-Limit"] == created.fields["Upload-Limit"])
    }

    @Test("LIM-14: without limits the value of Upload-Limit is min-size=0", arguments: Dialect.allCases)
    func noLimits(dialect: Dialect) {
        #expect(UploadLimits().fieldValue(for: dialect) == "min-size=0")
    }

    @Test("LIM-20 STF-08: Upload-Limit is a Dictionary of Integers of at most 15 digits", arguments: Dialect.allCases)
    func canonical(dialect: Dialect) throws {
        var random = SeededGenerator(seed: 20)
        func number() -> Int64? {
            Bool.random(using: &random)
                ? Int64.random(in: .min ... .max, using: &random) >> Int64.random(in: 0...60, using: &random) : nil
        }
        for _ in 0..<300 {
            let limits = UploadLimits(
                maxSize: number(), minSize: number(), maxAppendSize: number(), minAppendSize: number(), maxAge: number()
            )
            let value = limits.fieldValue(for: dialect)
            let dictionary = try OrderedDictionary(parsing: value)
            #expect(try dictionary.serialized() == value)
            #expect(!dictionary.isEmpty)
            for (key, member) in dictionary {
                guard case .item(let item) = member, case .integer(let integer) = item.value else {
                    Issue.record("\(key) is no Integer in \(value)")
                    continue
                }
                #expect((0...999_999_999_999_999).contains(integer))
            }
        }
    }

    @Test(
        "VER-19: the keys of the lifetime are expires and max-age in version 6, and max-age in others",
        arguments: Dialect.allCases)
    func lifetime(dialect: Dialect) {
        let value = UploadLimits(maxAge: 60).fieldValue(for: dialect)
        #expect(value == (dialect == .interop6 ? "expires=60, max-age=60" : "max-age=60"))
    }

    @Test("OFF-16: the announced lifetime is the remaining lifetime, and is never negative")
    func remaining() {
        let limits = UploadLimits(maxSize: 1, maxAge: 60)
        #expect(limits.remaining(58).fieldValue(for: .interop8) == "max-size=1, max-age=58")
        #expect(limits.remaining(-3).maxAge == 0)
        #expect(limits.remaining(nil).maxAge == nil)
    }

    @Test("APP-25 LIM-01: a representation larger than the largest offset is refused", arguments: Dialect.allCases)
    func largestSize(dialect: Dialect) {
        for limits in [UploadLimits(), UploadLimits(maxSize: .max)] {
            let largest = 999_999_999_999_999 as Int64
            let fits = dialect.creation(complete: true, framing: .length(largest)).decide(limits: limits)
            #expect(fits.createdPlan != nil)
            for size in [largest + 1, .max] {
                let decision = dialect.creation(complete: true, framing: .length(size)).decide(limits: limits)
                #expect(decision.refusal == .uploadTooLarge(limit: largest))
            }
        }
    }

    @Test("two sets of limits are combined to limits that satisfy both")
    func restriction() {
        let server = UploadLimits(maxSize: 100, minSize: 5, maxAppendSize: 50, minAppendSize: 2, maxAge: 60)
        #expect(server.restricted(by: nil) == server)
        #expect(server.restricted(by: UploadLimits()) == server)
        #expect(UploadLimits().restricted(by: server) == server)
        #expect(server.restricted(by: server) == server)
        let lower = UploadLimits(maxSize: 99, minSize: 4, maxAppendSize: 49, minAppendSize: 1, maxAge: 59)
        let restricted = UploadLimits(maxSize: 99, minSize: 5, maxAppendSize: 49, minAppendSize: 2, maxAge: 59)
        #expect(server.restricted(by: lower) == restricted)
        #expect(lower.restricted(by: server) == restricted)
        #expect(server.restricted(by: UploadLimits(maxAge: 1)).fieldValue(for: .rfc).hasSuffix("max-age=1"))
        #expect(server.restricted(by: UploadLimits(maxSize: 0)).effectiveMaxSize == 0)
    }
}
