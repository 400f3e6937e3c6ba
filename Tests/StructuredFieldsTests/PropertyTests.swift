import StructuredFields
import Testing

@Suite("Properties of generated values")
struct PropertyTests {
    static let seeds: [UInt64] = [1, 2, 0xDEAD_BEEF, 0x9651]

    @Test("A serialized value parses to the same value", arguments: seeds)
    func roundTrip(seed: UInt64) throws {
        var generator = ValueGenerator(seed: seed)
        for _ in 0..<500 {
            try check(generator.item(), seed)
            try check(generator.list(), seed)
            try check(generator.dictionary(), seed)
        }
    }

    @Test("Arbitrary bytes never crash the parser, and parsed values round-trip", arguments: seeds)
    func arbitraryBytes(seed: UInt64) {
        var generator = ValueGenerator(seed: seed)
        let likely = Array("()\"\\:;,=?@%*-.01 \tab+/".utf8)
        for round in 0..<6000 {
            let bytes = (0..<generator.number(0...24)).map { _ -> UInt8 in
                round.isMultiple(of: 3)
                    ? .random(in: 0...255, using: &generator.random)
                    : likely[generator.number(0...likely.count - 1)]
            }
            parseAll(bytes, seed)
        }
    }

    @Test("Changed valid values never crash the parser, and parsed values round-trip", arguments: seeds)
    func changedValues(seed: UInt64) throws {
        var generator = ValueGenerator(seed: seed)
        for round in 0..<2000 {
            let text = try round.isMultiple(of: 2) ? generator.list().serialized() : generator.dictionary().serialized()
            var bytes = Array(text.utf8)
            for _ in 0..<generator.number(1...4) where !bytes.isEmpty {
                let position = generator.number(0...bytes.count - 1)
                switch generator.number(0...3) {
                case 0: bytes[position] = .random(in: 0...255, using: &generator.random)
                case 1: bytes.remove(at: position)
                case 2: bytes.insert(bytes[generator.number(0...bytes.count - 1)], at: position)
                default: bytes.removeSubrange(position...)
                }
            }
            parseAll(bytes, seed)
        }
    }

    @Test(
        "Long and deep input does not crash the parser",
        arguments: ["(", "1,", "a;", "\"", "\\", ":", "a=(", "%22", ";a", " ", "9", "?1,"])
    func repetition(text: String) {
        let bytes = Array(String(repeating: text, count: 50_000).utf8)
        parseAll(bytes, 0)
        parseAll(Array("a=".utf8) + bytes, 0)
        parseAll(Array("%\"".utf8) + bytes, 0)
    }

    private func check<Value: FieldValue>(_ value: Value, _ seed: UInt64) throws {
        let text = try value.serialized()
        #expect(text.utf8.allSatisfy { (0x20...0x7E).contains($0) }, "seed \(seed)")
        #expect(try Value(parsing: text) == value, "seed \(seed): \(text)")
        #expect(try Value(parsing: Array(text.utf8)) == value, "seed \(seed): \(text)")
    }

    private func parseAll(_ bytes: [UInt8], _ seed: UInt64) {
        parse(Item.self, bytes, seed)
        parse(List.self, bytes, seed)
        parse(OrderedDictionary.self, bytes, seed)
    }

    /// Parses the bytes. Checks that the position of a failure is within the input, or that the parsed value equals the
    /// value that is parsed from its canonical form.
    private func parse<Value: FieldValue>(_: Value.Type, _ bytes: [UInt8], _ seed: UInt64) {
        do {
            let value = try Value(parsing: bytes)
            let text = try value.serialized()
            #expect(try Value(parsing: text) == value, "seed \(seed): \(bytes)")
            #expect(try Value(parsing: text).serialized() == text, "seed \(seed): \(bytes)")
        } catch let failure as ParseFailure {
            #expect((0...bytes.count).contains(failure.offset), "seed \(seed): \(bytes)")
        } catch {
            Issue.record("seed \(seed): \(error) from \(bytes)")
        }
    }
}
