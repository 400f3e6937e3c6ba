import HTTPSemantics
import TestSupport
import Testing

@Suite struct EntityTagTests {
    @Test(arguments: [
        ("\"a\"", "a", false), ("W/\"a\"", "a", true), ("\"\"", "", false), ("\"a\\b,c!\"", "a\\b,c!", false),
        (" \"é\" ", "é", false),
    ])
    func parsed(value: String, opaque: String, isWeak: Bool) throws {
        let tag = try #require(EntityTag(parsing: value))
        #expect(tag.opaque == opaque && tag.isWeak == isWeak)
        #expect(tag.serialized == value.filter { $0 != " " })
        #expect(EntityTag(opaque: opaque, isWeak: isWeak) == tag)
    }

    @Test(arguments: [
        "", "a", "\"a", "a\"", "w/\"a\"", "W/a", "W /\"a\"", "W/", "\"a b\"", "\"a\"b\"", "\"a\", \"b\"", "\"a\0\"",
        "*", "'a'",
        "\"a\u{7F}\"",
    ])
    func refused(value: String) {
        #expect(EntityTag(parsing: value) == nil)
    }

    @Test("an opaque tag with a quotation mark, a space or a line end is refused")
    func construction() {
        #expect(EntityTag(opaque: "a\"b") == nil)
        #expect(EntityTag(opaque: "a b") == nil)
        #expect(EntityTag(opaque: "a\r\n") == nil)
    }

    @Test(
        "RNG-16: strong and weak comparison follow RFC 9110 section 8.8.3.2",
        arguments: [
            ("W/\"1\"", "W/\"1\"", false, true), ("W/\"1\"", "W/\"2\"", false, false),
            ("W/\"1\"", "\"1\"", false, true),
            ("\"1\"", "\"1\"", true, true), ("\"e\u{301}\"", "\"\u{E9}\"", false, false),
        ])
    func comparison(left: String, right: String, strong: Bool, weak: Bool) throws {
        let left = try #require(EntityTag(parsing: left))
        let right = try #require(EntityTag(parsing: right))
        #expect(left.strongMatches(right) == strong && right.strongMatches(left) == strong)
        #expect(left.weakMatches(right) == weak && right.weakMatches(left) == weak)
    }

    @Test("a condition is an asterisk or a list of entity tags; other values are refused")
    func conditions() throws {
        let strong = try #require(EntityTag(opaque: "a"))
        let weak = try #require(EntityTag(opaque: "b,c", isWeak: true))
        #expect(EntityTagCondition(fieldLines: [" * "]) == .any)
        #expect(EntityTagCondition(fieldLines: ["\"a\",W/\"b,c\""]) == .tags([strong, weak]))
        #expect(EntityTagCondition(fieldLines: ["\"a\"", "W/\"b,c\""]) == .tags([strong, weak]))
        #expect(EntityTagCondition(fieldLines: [", \"a\" ,,"]) == .tags([strong]))
        for lines in [[], [""], [","], ["a"], ["*, \"a\""], ["*", "*"], ["\"a\" \"b\""], ["\"a\";x"]] {
            #expect(EntityTagCondition(fieldLines: lines) == nil)
        }
    }

    @Test(arguments: SeededGenerator.seeds)
    func arbitraryValuesNeverCrash(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        for index in 0..<SeededGenerator.count(4_000) {
            let value =
                index % 2 == 0
                ? generator.mutate("W/\"abc\", \"d\"") : generator.string(from: Array("W/\"a*, é"), upTo: 10)
            if let tag = EntityTag(parsing: value) { #expect(EntityTag(parsing: tag.serialized) == tag) }
            if case .tags(let tags)? = EntityTagCondition(fieldLines: [value]) {
                #expect(EntityTagCondition(fieldLines: tags.map(\.serialized)) == .tags(tags))
            }
        }
    }
}
