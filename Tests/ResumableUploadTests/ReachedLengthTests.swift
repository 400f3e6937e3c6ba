import HTTPSemantics
import ResumableUpload
import Testing

/// Content that reaches the declared length although the request has `Upload-Complete: ?0`.
@Suite struct ReachedLengthTests {
    private let answer = Response(status: 201, fields: ["Location": "/doc/1"], content: Array("made".utf8))

    /// The result at the end of content of `count` bytes that arrives in pieces.
    private func end(_ plan: ContentPlan, after count: Int, pieces: Int = 7) -> ContentCounter.End {
        var counter = ContentCounter(plan)
        var remaining = count
        while remaining > 0 {
            #expect(counter.receive(min(pieces, remaining)) == .accept)
            remaining -= min(pieces, remaining)
        }
        return counter.end()
    }

    @Test(
        "VER-24 CMP-01: a creation with ?0 that reaches its length completes the upload in versions 5 and 6 only",
        arguments: Dialect.allCases)
    func creation(dialect: Dialect) throws {
        for length in 0...20 {
            for count in 0...length {
                for framing in [MessageFraming.length(Int64(count)), .chunked] {
                    let creation = dialect.creation(complete: false, framing: framing, length: Int64(length))
                    let plan = try #require(creation.decide(limits: UploadLimits()).createdPlan)
                    let completes = dialect.lengthCompletes && count == length
                    #expect(end(plan, after: count) == (completes ? .complete(length: Int64(length)) : .part))
                }
            }
        }
    }

    @Test(
        "VER-24 CMP-01 CMP-02: an append with ?0 that reaches the length completes the upload in versions 5 and 6 only",
        arguments: Dialect.allCases)
    func append(dialect: Dialect) throws {
        for offset in 0...8 {
            for count in 0...8 - offset {
                for framing in [MessageFraming.length(Int64(count)), .chunked] {
                    // The length was declared earlier, by this append, by both, or not at all.
                    for (known, declared) in [(8, nil), (nil, 8), (8, 8), (nil, nil)] as [(Int64?, Int64?)] {
                        let fields = dialect.append(complete: false, offset: Int64(offset), length: declared)
                        let state = UploadState(offset: Int64(offset), length: known)
                        let plan = try #require(dialect.decide(fields, framing, on: state).plan)
                        let completes = dialect.lengthCompletes && offset + count == 8 && (known ?? declared) != nil
                        #expect(end(plan, after: count) == (completes ? .complete(length: 8) : .part))
                    }
                }
            }
        }
    }

    @Test("VER-24: in versions 5 and 6 an append without the field that reaches the length completes the upload")
    func withoutField() throws {
        for dialect in [Dialect.interop4, .interop5, .interop6] {
            let state = UploadState(offset: 40, length: 50)
            let plan = try #require(dialect.decide(dialect.append(offset: 40), .length(10), on: state).plan)
            #expect(end(plan, after: 10) == (dialect.lengthCompletes ? .complete(length: 50) : .part))
        }
    }

    @Test("VER-22 VER-24: the version of the append decides whether the length completes the upload")
    func mixedVersions() throws {
        let state = UploadState(offset: 40, length: 50)
        for dialect in Dialect.allCases {
            let plan = try #require(
                dialect.decide(dialect.append(complete: false, offset: 40), .length(10), on: state).plan)
            #expect((end(plan, after: 10) == .complete(length: 50)) == dialect.lengthCompletes)
        }
    }

    @Test(
        "CMP-01 CMP-02: in the other versions only ?1 completes the upload, even at its length",
        arguments: Dialect.allCases)
    func explicitCompletion(dialect: Dialect) throws {
        let full = UploadState(offset: 100, length: 100)
        #expect(!full.isComplete)
        #expect(dialect.responses.retrieved(state: full).fields.completeness(in: dialect) == false)
        let finish = try #require(dialect.decide(dialect.append(complete: true, offset: 100), .none, on: full).plan)
        #expect(end(finish, after: 0) == .complete(length: 100))
        let part = try #require(dialect.decide(dialect.append(complete: false, offset: 100), .none, on: full).plan)
        #expect((end(part, after: 0) == .complete(length: 100)) == dialect.lengthCompletes)
    }

    @Test(
        "LEN-03 LEN-05: content beyond the length is refused, with Content-Length and with chunked framing",
        arguments: Dialect.allCases)
    func pastLength(dialect: Dialect) throws {
        let state = UploadState(offset: 5, length: 10)
        let announced = dialect.decide(dialect.append(complete: false, offset: 5), .length(6), on: state)
        #expect(announced.refusal?.isInconsistentLength == true)
        let plan = try #require(dialect.decide(dialect.append(complete: false, offset: 5), .chunked, on: state).plan)
        var counter = ContentCounter(plan)
        #expect(counter.receive(5) == .accept)
        #expect(counter.receive(1) == .exceedsLength(10))
        guard dialect >= .interop5 else { return }
        let creation = dialect.creation(complete: false, framing: .length(1), length: 0)
        #expect(creation.decide(limits: UploadLimits()).refusal?.isInconsistentLength == true)
    }

    @Test("LEN-03: an append with ?1 that ends before the length is reported as short", arguments: Dialect.allCases)
    func shortEnd(dialect: Dialect) throws {
        let state = UploadState(offset: 5, length: 10)
        let plan = try #require(dialect.decide(dialect.append(complete: true, offset: 5), .chunked, on: state).plan)
        #expect(end(plan, after: 4) == .short(length: 10, received: 9))
    }

    @Test(
        "LIM-07: min-append-size and min-size do not apply to content that reaches the length",
        arguments: Dialect.allCases)
    func limits(dialect: Dialect) {
        let limits = UploadLimits(minSize: 100, minAppendSize: 10)
        let state = UploadState(offset: 5, length: 7, limits: limits)
        let last = dialect.decide(dialect.append(complete: false, offset: 5), .length(2), on: state)
        #expect((last.plan != nil) == dialect.lengthCompletes)
        let part = dialect.decide(dialect.append(complete: false, offset: 5), .length(1), on: state)
        #expect(part.refusal == .appendTooSmall(limit: 10))
        // The client may need the URL of the upload, so the request is not handled as a plain one, although the
        // representation is smaller than the minimum size.
        let creation = dialect.creation(complete: false, framing: .length(3), length: 3).decide(limits: limits)
        #expect((creation.createdPlan != nil) == dialect.lengthCompletes)
        let partial = dialect.creation(complete: false, framing: .length(3), length: 4).decide(limits: limits)
        #expect(partial.refusal == .appendTooSmall(limit: 10))
    }

    @Test(
        "APP-20 VER-24: an empty append at the final offset gets the stored answer",
        arguments: Dialect.allCases)
    func repeats(dialect: Dialect) {
        for (phase, expected) in [
            (UploadState.Phase.complete(answer), Append.Decision.replay(answer)), (.processing, .join),
        ] {
            let state = UploadState(offset: 40, length: 40, phase: phase)
            for framing in [MessageFraming.none, .length(0)] {
                let done = dialect.decide(dialect.append(complete: true, offset: 40), framing, on: state)
                let isRefused = dialect == .interop7 && phase != .processing
                #expect(done == (isRefused ? .refuse(.completed) : expected))
                let part = dialect.decide(dialect.append(complete: false, offset: 40), framing, on: state)
                #expect(part == (dialect.lengthCompletes ? expected : .refuse(.completed)))
            }
        }
    }

    @Test(
        "VER-17: versions 6 and 7 refuse all other appends to a completed upload before they check the offset",
        arguments: Dialect.allCases)
    func refusals(dialect: Dialect) {
        let state = UploadState(offset: 40, length: 40, phase: .complete(answer))
        let content = dialect.decide(dialect.append(complete: true, offset: 40), .length(1), on: state)
        #expect(content == .refuse(.completed))
        let elsewhere = dialect.decide(dialect.append(complete: true, offset: 39), .length(0), on: state)
        let isFirst = dialect == .interop6 || dialect == .interop7
        #expect(elsewhere == .refuse(isFirst ? .completed : .mismatchingOffset(expected: 40, provided: 39)))
        // The target answered before all content had arrived.
        let early = UploadState(offset: 10, length: 40, phase: .complete(answer))
        let part = dialect.decide(dialect.append(complete: false, offset: 10), .length(0), on: early)
        #expect(part == .refuse(.completed))
    }

    @Test(
        "VER-24: a retrieval completes an upload in versions 5 and 6 only, and only at the declared length",
        arguments: Dialect.allCases)
    func retrieval(dialect: Dialect) {
        #expect(dialect.completesOnRetrieval(UploadState(offset: 40, length: 40)) == dialect.lengthCompletes)
        #expect(dialect.completesOnRetrieval(UploadState(offset: 0, length: 0)) == dialect.lengthCompletes)
        for state in [
            UploadState(offset: 39, length: 40), UploadState(offset: 40), UploadState(offset: 0),
            UploadState(offset: 40, length: 40, phase: .processing),
            UploadState(offset: 40, length: 40, phase: .complete(answer)),
        ] { #expect(!dialect.completesOnRetrieval(state)) }
    }
}
