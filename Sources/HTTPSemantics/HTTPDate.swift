/// A point in time as in HTTP messages, in seconds and UTC (RFC 9110 §5.6.7).
package struct HTTPDate: Hashable, Comparable, Sendable {
    /// Seconds since 1970-01-01T00:00:00Z without leap seconds, within the years 0000…9999.
    package let secondsSinceEpoch: Int64

    /// Values outside the years 0000…9999, which HTTP cannot express, become the nearest value in that range.
    package init(secondsSinceEpoch: Int64) {
        self.secondsSinceEpoch = min(max(secondsSinceEpoch, HTTPDate.minimumSeconds), HTTPDate.maximumSeconds)
    }

    /// 0000-01-01T00:00:00Z
    static let minimumSeconds: Int64 = -62_167_219_200
    /// 9999-12-31T23:59:59Z
    static let maximumSeconds: Int64 = 253_402_300_799

    package static func < (left: HTTPDate, right: HTTPDate) -> Bool {
        left.secondsSinceEpoch < right.secondsSinceEpoch
    }

    /// The date as IMF-fixdate, e.g. `Sun, 06 Nov 1994 08:49:37 GMT`.
    package var serialized: String {
        let seconds = Int(secondsSinceEpoch)
        let dayNumber = (seconds >= 0 ? seconds : seconds - 86_399) / 86_400
        let secondOfDay = seconds - dayNumber * 86_400
        let date = CivilDate(dayNumber: dayNumber)
        let time = [secondOfDay / 3600, secondOfDay / 60 % 60, secondOfDay % 60]
            .map { HTTPDate.padded($0, to: 2) }.joined(separator: ":")
        let day = HTTPDate.padded(date.day, to: 2)
        let year = HTTPDate.padded(date.year, to: 4)
        let weekday = HTTPDate.dayNames[date.weekday].prefix(3)
        return "\(weekday), \(day) \(HTTPDate.monthNames[date.month - 1]) \(year) \(time) GMT"
    }

    /// In full, Sunday first; the short forms are their first three letters.
    static let dayNames = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]
    static let monthNames = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    private static func padded(_ number: Int, to width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
    }
}

extension HTTPDate: CustomStringConvertible {
    package var description: String { serialized }
}
