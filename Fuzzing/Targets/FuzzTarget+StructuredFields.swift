import StructuredFields

extension FuzzTarget {
    /// Checks structured fields (RFC 9651): a valid value equals the value parsed from its canonical form. The error for an invalid value names a
    /// position in the input.
    static let structuredFields = FuzzTarget(
        name: "structured-fields",
        dictionary: ["?1", "?0", "@", "%\"", ":", "=", ";a=", "(", ")", ", ", "\\\"", "1.5", "-", "a=1", "%00", "%c3"],
        seeds: { generator in
            StructuredFieldCorpus.lines()
                + (0..<200).map { _ in Array(StructuredFieldText.value(&generator).utf8) }
        },
        check: { input throws(Violation) in
            let bytes = Array(input)
            try checkField(Item.self, bytes)
            try checkField(List.self, bytes)
            try checkField(OrderedDictionary.self, bytes)
            // The value is also parsed as several field lines, by a different function.
            let lines = InputReader(input).lines
            _ = try? Item(parsing: lines)
            _ = try? List(parsing: lines)
            _ = try? OrderedDictionary(parsing: lines)
        })

    private static func checkField<Value: FieldValue>(_: Value.Type, _ bytes: [UInt8]) throws(Violation) {
        let value: Value
        do throws(ParseFailure) { value = try Value(parsing: bytes) } catch {
            try require((0...bytes.count).contains(error.offset), "\(error) is outside the input")
            return
        }
        guard let text = try? value.serialized() else { throw Violation("\(value) cannot be written") }
        try require(text.utf8.allSatisfy { (0x20...0x7E).contains($0) }, "\(text) is not ASCII")
        try require(text.utf8.count <= 8 * bytes.count + 8, "\(bytes.count) bytes became \(text.utf8.count)")
        try require((try? Value(parsing: text)) == value, "\(text) is parsed to another value")
    }
}
