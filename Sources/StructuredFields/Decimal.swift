/// A Decimal: up to 12 digits before the point and three after it (RFC 9651 section 3.3.2).
///
/// The value is kept exactly, as a count of thousandths.
package struct Decimal: Hashable, Sendable {
    /// The largest magnitude, 999999999999.999, in thousandths.
    static let maxThousandths = 999_999_999_999_999

    /// The value times 1000, within ±999,999,999,999,999.
    package let thousandths: Int

    /// Returns `nil` if the integer part has more than 12 digits.
    package init?(thousandths: Int) {
        guard (-Self.maxThousandths...Self.maxThousandths).contains(thousandths) else { return nil }
        self.thousandths = thousandths
    }

    /// Rounds to three fractional digits, and ties to the even digit (RFC 9651 section 4.1.5).
    ///
    /// Returns `nil` if the value is not finite, or if its integer part has more than 12 digits after rounding.
    package init?(rounding value: Double) {
        let scaled = value * 1000
        guard scaled.magnitude <= Double(Self.maxThousandths) + 1 else { return nil }
        // `rounded(_:)` would need the C mathematics library, which this module does not link.
        let integer = Int(scaled)
        let remainder = (scaled - Double(integer)).magnitude
        let roundsAway = remainder > 0.5 || (remainder == 0.5 && !integer.isMultiple(of: 2))
        self.init(thousandths: integer + (roundsAway ? (scaled < 0 ? -1 : 1) : 0))
    }
}

extension Decimal: Comparable {
    package static func < (left: Decimal, right: Decimal) -> Bool { left.thousandths < right.thousandths }
}

extension Decimal: CustomStringConvertible {
    /// The canonical form: no leading or trailing zeros, except one on each side of the point (`0.5`, `-3.0`).
    package var description: String {
        let (integer, remainder) = thousandths.magnitude.quotientAndRemainder(dividingBy: 1000)
        var fraction = remainder
        var width = 3
        while width > 1, fraction.isMultiple(of: 10) {
            fraction /= 10
            width -= 1
        }
        let digits = String(fraction)
        let padding = String(repeating: "0", count: width - digits.utf8.count)
        return "\(thousandths < 0 ? "-" : "")\(integer).\(padding)\(digits)"
    }
}
