import HTTPSemantics
import TestSupport
import Testing

@Suite struct PreconditionsTests {
    private static let now = HTTPDate(secondsSinceEpoch: 1_782_900_000)
    private static let modified = HTTPDate(secondsSinceEpoch: 1_782_800_000)

    private static func date(_ offset: Int64) -> String {
        HTTPDate(secondsSinceEpoch: modified.secondsSinceEpoch + offset).serialized
    }

    private let current = Validators(entityTag: EntityTag(opaque: "a"), lastModified: modified, date: now)
    private let weak = Validators(entityTag: EntityTag(opaque: "a", isWeak: true), lastModified: modified, date: now)

    private func evaluate(_ fields: Fields, _ method: Method = .get, _ validators: Validators?) -> Preconditions.Outcome
    {
        Preconditions(fields: fields, now: PreconditionsTests.now).evaluate(method: method, current: validators)
    }

    private func rangeApplies(_ value: String, _ validators: Validators) -> Bool {
        Preconditions(fields: ["If-Range": value], now: PreconditionsTests.now).rangeApplies(current: validators)
    }

    @Test("without conditions every request and its range are permitted")
    func withoutConditions() {
        let none = Preconditions(fields: ["Range": "bytes=0-"], now: PreconditionsTests.now)
        #expect(none.isEmpty && none.evaluate(method: .get, current: nil) == .proceed)
        #expect(none.rangeApplies(current: current))
        #expect(!Preconditions(fields: ["if-range": "x"], now: PreconditionsTests.now).isEmpty)
    }

    @Test("RNG-16: If-Match compares strongly")
    func ifMatch() {
        #expect(evaluate(["If-Match": "\"a\""], .put, current) == .proceed)
        #expect(evaluate(["If-Match": "\"b\", \"a\""], .get, current) == .proceed)
        #expect(evaluate(["If-Match": "\"b\""], .put, current) == .failed)
        #expect(evaluate(["If-Match": "W/\"a\""], .put, current) == .failed)
        #expect(evaluate(["If-Match": "\"a\""], .put, weak) == .failed)
        #expect(evaluate(["If-Match": "W/\"a\""], .put, weak) == .failed)
        #expect(evaluate(["If-Match": "*"], .put, weak) == .proceed)
        #expect(evaluate(["If-Match": "*"], .put, nil) == .failed)
        #expect(evaluate(["If-Match": "\"a\""], .put, nil) == .failed)
        #expect(evaluate(["If-Match": "\"a\""], .put, Validators(date: PreconditionsTests.now)) == .failed)
        #expect(evaluate(["If-Match": "a"], .put, current) == .failed)
        #expect(evaluate(["If-Match": ""], .put, current) == .failed)
    }

    @Test("RNG-16: If-None-Match compares weakly; 304 for GET and HEAD, 412 otherwise")
    func ifNoneMatch() {
        for value in ["\"a\"", "W/\"a\"", "*", "\"b\", W/\"a\""] {
            for validators in [current, weak] {
                #expect(evaluate(["If-None-Match": value], .get, validators) == .notModified)
                #expect(evaluate(["If-None-Match": value], .head, validators) == .notModified)
                #expect(evaluate(["If-None-Match": value], .put, validators) == .failed)
            }
            #expect(evaluate(["If-None-Match": value], .put, nil) == .proceed)
        }
        #expect(evaluate(["If-None-Match": "\"b\""], .get, current) == .proceed)
        #expect(evaluate(["If-None-Match": "a"], .get, current) == .proceed)
        #expect(evaluate(["If-None-Match": "a"], .put, current) == .failed)
        #expect(evaluate(["If-None-Match": "\"a\""], .get, Validators(date: PreconditionsTests.now)) == .proceed)
    }

    @Test("If-Unmodified-Since and If-Modified-Since compare the date; invalid dates are ignored")
    func dates() {
        let date = PreconditionsTests.date
        #expect(evaluate(["If-Unmodified-Since": date(0)], .put, current) == .proceed)
        #expect(evaluate(["If-Unmodified-Since": date(1)], .put, current) == .proceed)
        #expect(evaluate(["If-Unmodified-Since": date(-1)], .put, current) == .failed)
        #expect(evaluate(["If-Unmodified-Since": date(-1)], .put, nil) == .proceed)
        #expect(evaluate(["If-Unmodified-Since": "yesterday"], .put, current) == .proceed)
        #expect(evaluate(["If-Modified-Since": date(0)], .get, current) == .notModified)
        #expect(evaluate(["If-Modified-Since": date(1)], .head, current) == .notModified)
        #expect(evaluate(["If-Modified-Since": date(-1)], .get, current) == .proceed)
        #expect(evaluate(["If-Modified-Since": date(0)], .post, current) == .proceed)
        #expect(evaluate(["If-Modified-Since": "0"], .get, current) == .proceed)
        #expect(evaluate(["If-Modified-Since": date(0)], .get, nil) == .proceed)
        let twice = Fields([("If-Modified-Since", date(0)), ("If-Modified-Since", date(0))])
        #expect(evaluate(twice, .get, current) == .proceed)
    }

    @Test("RNG-15: preconditions are evaluated in the order of RFC 9110")
    func order() {
        let date = PreconditionsTests.date
        #expect(
            evaluate(["If-Match": "\"b\"", "If-None-Match": "\"a\"", "Range": "bytes=0-"], .get, current) == .failed)
        #expect(
            evaluate(["If-Match": "\"a\"", "If-None-Match": "\"a\"", "Range": "bytes=0-"], .get, current)
                == .notModified)
        #expect(evaluate(["If-Match": "\"a\"", "If-Unmodified-Since": date(-1)], .put, current) == .proceed)
        #expect(evaluate(["If-None-Match": "\"b\"", "If-Modified-Since": date(0)], .get, current) == .proceed)
        #expect(evaluate(["If-None-Match": "x", "If-Modified-Since": date(0)], .get, current) == .proceed)
        #expect(evaluate(["If-Unmodified-Since": date(-1), "If-None-Match": "\"a\""], .get, current) == .failed)
        for method in [Method.options, .trace, .connect] {
            #expect(evaluate(["If-Match": "\"b\""], method, current) == .proceed)
        }
    }

    @Test("RNG-12: If-Range with an entity tag permits Range only if the current tag is identical and strong")
    func ifRangeTag() {
        #expect(rangeApplies("\"a\"", current))
        #expect(!rangeApplies("W/\"a\"", current))
        #expect(!rangeApplies("\"b\"", current))
        #expect(!rangeApplies("\"a\"", weak))
        #expect(!rangeApplies("W/\"a\"", weak))
        #expect(!rangeApplies("\"a\", \"b\"", current))
        #expect(!rangeApplies("*", current))
        #expect(!rangeApplies("\"a\"", Validators(date: PreconditionsTests.now)))
        let twice = Preconditions(
            fields: Fields([("If-Range", "\"a\""), ("If-Range", "\"a\"")]), now: PreconditionsTests.now)
        #expect(!twice.rangeApplies(current: current))
    }

    @Test("RNG-14: If-Range without Range never changes the response")
    func ifRangeWithoutRange() {
        for value in ["\"a\"", "\"b\"", "junk", PreconditionsTests.date(-1)] {
            #expect(evaluate(["If-Range": value], .get, current) == .proceed)
            #expect(evaluate(["If-Range": value], .put, nil) == .proceed)
        }
    }

    @Test("RNG-13: If-Range with a date permits Range only if Last-Modified is identical and strong")
    func ifRangeDate() {
        #expect(rangeApplies(PreconditionsTests.date(0), current))
        #expect(!rangeApplies(PreconditionsTests.date(1), current))
        #expect(!rangeApplies(PreconditionsTests.date(-1), current))
        let fresh = Validators(lastModified: PreconditionsTests.modified, date: PreconditionsTests.modified)
        #expect(!rangeApplies(PreconditionsTests.date(0), fresh))
        let older = Validators(
            lastModified: PreconditionsTests.modified,
            date: HTTPDate(secondsSinceEpoch: PreconditionsTests.modified.secondsSinceEpoch + 1))
        #expect(rangeApplies(PreconditionsTests.date(0), older))
        #expect(!rangeApplies(PreconditionsTests.date(0), Validators(date: PreconditionsTests.now)))
        #expect(!rangeApplies("tomorrow", current))
    }

    @Test(arguments: SeededGenerator.seeds)
    func arbitraryValuesNeverCrash(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let names = ["If-Match", "If-None-Match", "If-Range", "If-Modified-Since", "If-Unmodified-Since"]
        for _ in 0..<SeededGenerator.count(2_000) {
            let fields = Fields(
                names.map { ($0, generator.mutate("\"a\", W/\"b\"")) } + [("If-Range", generator.unicode(upTo: 9))])
            let preconditions = Preconditions(fields: fields, now: PreconditionsTests.now)
            #expect(preconditions.evaluate(method: .put, current: current) != .notModified)
            _ = preconditions.rangeApplies(current: current)
        }
    }
}
