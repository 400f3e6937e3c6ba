/// A Content-Range value of unit "bytes" (RFC 9110 §14.4).
package struct ContentRange: Sendable, Hashable {
    /// The half-open range of the enclosed part, not empty; nil in a 416 response, which only has the size.
    package let range: Range<Int64>?
    /// The size of the complete representation; nil when unknown (`*`). Never nil together with `range`.
    package let size: Int64?

    /// `bytes first-last/size`, or `bytes first-last/*`; nil when the range is empty, negative or exceeds the size.
    package init?(range: Range<Int64>, size: Int64?) {
        guard !range.isEmpty, range.lowerBound >= 0, range.upperBound <= size ?? .max else { return nil }
        self.range = range
        self.size = size
    }

    /// `bytes */size`, for 416 (RFC 9110 §15.5.17). A negative size counts as 0.
    package init(unsatisfiedSize size: Int64) {
        range = nil
        self.size = Swift.max(0, size)
    }

    /// Parses a field value. Returns nil for another unit, a malformed value, positions that contradict each other or
    /// the size, and numbers above `Int64.max`. A recipient must not combine such a part with others (§14.4).
    package init?(parsing value: String) {
        var scanner = FieldValueScanner(value.trimmingOptionalWhitespace)
        guard let unit = scanner.token(), unit.equalsIgnoringASCIICase("bytes"), scanner.consume(" ") else {
            return nil
        }
        if scanner.consume(literal: "*/") {
            guard let size = ContentRange.number(&scanner), scanner.isAtEnd else { return nil }
            self.init(unsatisfiedSize: size)
            return
        }
        guard let first = ContentRange.number(&scanner), scanner.consume("-"),
            let last = ContentRange.number(&scanner), scanner.consume("/"), first <= last, last < .max
        else { return nil }
        var size: Int64?
        if !scanner.consume("*") {
            guard let number = ContentRange.number(&scanner) else { return nil }
            size = number
        }
        guard scanner.isAtEnd else { return nil }
        self.init(range: first..<(last + 1), size: size)
    }

    /// The field value.
    package var serialized: String {
        let size = size.map(String.init) ?? "*"
        guard let range else { return "bytes */\(size)" }
        return "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(size)"
    }

    private static func number(_ scanner: inout FieldValueScanner) -> Int64? {
        scanner.digits().flatMap { Int64(String(decoding: $0, as: UTF8.self)) }
    }
}
