import ResumableUpload
import TestSupport
import Testing

@Suite struct ContentCounterTests {
    @Test("LEN-12 APP-25: the counter does not overflow with the largest offsets and lengths")
    func overflow() {
        var counter = ContentCounter(ContentPlan(start: .max - 5, completion: .atEnd, maxSize: .max))
        #expect(counter.receive(5) == .accept)
        #expect(counter.receive(1) == .exceedsMaxSize(.max))
        #expect(counter.received == 5)
        var known = ContentCounter(ContentPlan(start: .max - 5, completion: .atEnd, length: .max, maxSize: .max))
        #expect(known.receive(.max) == .exceedsLength(.max))
        var long = ContentCounter(ContentPlan(completion: .never, maxSize: .max))
        #expect(long.receive(.max) == .accept)
        #expect(long.receive(1) == .exceedsMaxSize(.max))
    }

    @Test("LEN-05 LIM-03: the length is checked before the limits")
    func order() {
        let plan = ContentPlan(start: 5, completion: .never, length: 10, maxSize: 10, maxContent: 5)
        var counter = ContentCounter(plan)
        #expect(counter.receive(6) == .exceedsLength(10))
        var unknown = ContentCounter(ContentPlan(start: 5, completion: .never, maxSize: 10, maxContent: 5))
        #expect(unknown.receive(6) == .exceedsMaxSize(10))
        var small = ContentCounter(ContentPlan(start: 5, completion: .never, maxSize: 100, maxContent: 5))
        #expect(small.receive(2) == .accept)
        #expect(small.receive(4) == .exceedsMaxContent(5, accepted: 3))
        #expect(small.received == 5)
    }

    @Test("APP-10 CRE-14: a part may be empty")
    func empty() {
        var counter = ContentCounter(ContentPlan(start: 5, completion: .never, length: 5))
        #expect(counter.receive(0) == .accept)
        #expect(counter.end() == .part)
    }

    @Test(
        "LEN-05 LEN-07: the verdict does not depend on how the content is divided", arguments: 0..<200 as Range<UInt64>)
    func cuts(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let start = Int64.random(in: 0...50, using: &random)
        let length = Bool.random(using: &random) ? start + Int64.random(in: 0...50, using: &random) : nil
        let maxSize = start + Int64.random(in: 0...60, using: &random)
        let plan = ContentPlan(start: start, completion: .atEnd, length: length, maxSize: maxSize)
        let content = Int64.random(in: 0...80, using: &random)
        var counter = ContentCounter(plan)
        var sent: Int64 = 0
        var verdict = ContentCounter.Verdict.accept
        while sent < content, verdict == .accept {
            let piece = min(Int64.random(in: 1...20, using: &random), content - sent)
            verdict = counter.receive(Int(piece))
            sent += piece
            #expect(start + counter.received <= min(length ?? maxSize, maxSize), "seed \(seed)")
        }
        let end = start + content
        #expect((verdict == .accept) == (end <= min(length ?? maxSize, maxSize)), "seed \(seed)")
        guard verdict == .accept else { return }
        let isComplete = length == nil || length == end
        #expect(
            counter.end() == (isComplete ? .complete(length: end) : .short(length: length ?? 0, received: end)),
            "seed \(seed)")
    }
}
