import CommandLineInterface

/// Parses sizes and durations.
enum Quantity {
    /// Bytes: an integer, alone or with K, M, G, T (powers of 1000) or KiB, MiB, GiB, TiB (powers of 1024).
    static func bytes(_ text: String) throws(OptionError) -> Int64 {
        let units: [String: Int64] = [
            "": 1, "K": 1000, "M": 1_000_000, "G": 1_000_000_000, "T": 1_000_000_000_000, "KIB": 1 << 10,
            "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40,
        ]
        return try value(text, units: units, expected: "a size such as 500M (powers of 1000) or 2GiB (of 1024)")
    }

    /// Seconds: an integer, alone or with s, m, h or d; at most a hundred years.
    static func seconds(_ text: String) throws(OptionError) -> Int64 {
        let units: [String: Int64] = ["": 1, "S": 1, "M": 60, "H": 3600, "D": 86_400]
        let seconds = try value(text, units: units, expected: "a duration such as 30s or 7d")
        guard seconds <= 36_525 * 86_400 else { throw OptionError("'\(text)' is too large") }
        return seconds
    }

    static func count(_ text: String, _ range: ClosedRange<Int>) throws(OptionError) -> Int {
        guard let value = Int(text), range.contains(value) else {
            throw OptionError("'\(text)' is not a number from \(range.lowerBound) to \(range.upperBound)")
        }
        return value
    }

    private static func value(_ text: String, units: [String: Int64], expected: String) throws(OptionError) -> Int64 {
        let digits = text.prefix { ("0"..."9").contains($0) }
        let unit = text.dropFirst(digits.count).uppercased()
        guard let number = Int64(digits), let factor = units[unit] else {
            throw OptionError("'\(text)' is not \(expected)")
        }
        let (result, overflow) = number.multipliedReportingOverflow(by: factor)
        guard !overflow, result <= 999_999_999_999_999 else { throw OptionError("'\(text)' is too large") }
        return result
    }
}
