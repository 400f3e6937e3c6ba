/// The ranges in a Range field, unit "bytes" (RFC 9110 §14.1, §14.2).
///
/// The caller must ignore Range for methods other than GET (§14.2).
package struct ByteRangeSet: Sendable, Hashable {
    /// One `range-spec`. Positions above `Int64.max` become `Int64.max`, which is beyond every representation.
    enum Specification: Sendable, Hashable {
        /// From `first` up to and including `last`; nil is the end.
        case positions(first: Int64, last: Int64?)
        /// The last `length` bytes.
        case suffix(length: Int64)
    }

    let specifications: [Specification]

    /// Parses the values of the Range lines, e.g. `["bytes=0-499, -500"]`.
    ///
    /// Nil means that the field must be ignored: no line or several, another unit, a malformed member, a member whose
    /// last position precedes its first. The unit's case is ignored, and so are empty list elements (§5.6.1.2).
    package init?(fieldLines: [String]) {
        guard fieldLines.count == 1 else { return nil }
        var scanner = FieldValueScanner(fieldLines[0].trimmingOptionalWhitespace)
        guard let unit = scanner.token(), unit.equalsIgnoringASCIICase("bytes"), scanner.consume(0x3D),
            scanner.next?.isOptionalWhitespace == false,
            let specifications = scanner.list(of: ByteRangeSet.specification), !specifications.isEmpty
        else { return nil }
        self.specifications = specifications
    }

    private static func specification(_ scanner: inout FieldValueScanner) -> Specification? {
        if scanner.consume(0x2D) {
            return scanner.digits().map { .suffix(length: clampedNumber($0)) }
        }
        guard let first = scanner.digits(), scanner.consume(0x2D) else { return nil }
        guard scanner.next?.isDigit == true, let last = scanner.digits() else {
            return .positions(first: clampedNumber(first), last: nil)
        }
        // Without leading zeros, texts of the same length compare as the numbers do, also above 64 bits.
        let isAscending = first.count == last.count ? !last.lexicographicallyPrecedes(first) : first.count < last.count
        return isAscending ? .positions(first: clampedNumber(first), last: clampedNumber(last)) : nil
    }

    private static func clampedNumber(_ digits: ArraySlice<UInt8>) -> Int64 {
        Int64(String(decoding: digits, as: UTF8.self)) ?? .max
    }
}
