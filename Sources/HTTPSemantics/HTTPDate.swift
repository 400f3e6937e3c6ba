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
        let date = CivilDate(dayNumber: dayNumber)
        let secondOfDay = secondOfDay
        // Every response has a date, so the text is written with one allocation.
        return String(unsafeUninitializedCapacity: 29) { buffer in
            var end = 0
            func append(_ text: some Sequence<UInt8>) {
                for byte in text {
                    buffer[end] = byte
                    end += 1
                }
            }
            func append(_ number: Int, digits: Int) {
                var remaining = number
                for place in (end..<end + digits).reversed() {
                    buffer[place] = UInt8(ascii: "0") + UInt8(remaining % 10)
                    remaining /= 10
                }
                end += digits
            }
            append(HTTPDate.dayNames[date.weekday].utf8.prefix(3))
            append(", ".utf8)
            append(date.day, digits: 2)
            append(" ".utf8)
            append(HTTPDate.monthNames[date.month - 1].utf8)
            append(" ".utf8)
            append(date.year, digits: 4)
            append(" ".utf8)
            append(secondOfDay / 3600, digits: 2)
            append(":".utf8)
            append(secondOfDay / 60 % 60, digits: 2)
            append(":".utf8)
            append(secondOfDay % 60, digits: 2)
            append(" GMT".utf8)
            return end
        }
    }

    /// The number of complete days since 1970-01-01, negative before it.
    var dayNumber: Int {
        let seconds = Int(secondsSinceEpoch)
        return (seconds >= 0 ? seconds : seconds - 86_399) / 86_400
    }

    /// The number of seconds since midnight.
    var secondOfDay: Int { Int(secondsSinceEpoch) - dayNumber * 86_400 }

    /// The full names of the days, beginning with Sunday. The short names are their first three letters.
    static let dayNames = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]
    static let monthNames = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
}

extension HTTPDate: CustomStringConvertible {
    package var description: String { serialized }
}

/// A day of the proleptic Gregorian calendar, with its number counted from 1970-01-01.
struct CivilDate: Equatable {
    let year: Int
    /// 1…12
    let month: Int
    /// 1…31
    let day: Int

    /// Creates a day; nil when the month has no such day.
    init?(year: Int, month: Int, day: Int) {
        guard (1...12).contains(month), day >= 1, day <= CivilDate.lengthOfMonth(month, year: year) else { return nil }
        self.year = year
        self.month = month
        self.day = day
    }

    /// Creates the day with this number.
    ///
    /// The algorithm is `civil_from_days` of Howard Hinnant ("chrono-Compatible Low-Level Date Algorithms"). Its years
    /// begin in March, so that the leap day is the last day of a year, and month m begins at day (153 m + 2) / 5. An
    /// era has 400 years, which are 146,097 days.
    init(dayNumber: Int) {
        let shifted = dayNumber + CivilDate.daysToEpoch
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
        month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    }

    /// Days since 1970-01-01, negative before it.
    var dayNumber: Int {
        let shiftedYear = month <= 2 ? year - 1 : year
        let era = (shiftedYear >= 0 ? shiftedYear : shiftedYear - 399) / 400
        let yearOfEra = shiftedYear - era * 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * 146_097 + dayOfEra - CivilDate.daysToEpoch
    }

    /// The day of the week; 0 is Sunday.
    var weekday: Int {
        let remainder = (dayNumber + 4) % 7
        return remainder < 0 ? remainder + 7 : remainder
    }

    /// The number of days from 0000-03-01 to 1970-01-01.
    private static let daysToEpoch = 719_468

    private static func lengthOfMonth(_ month: Int, year: Int) -> Int {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }
}
