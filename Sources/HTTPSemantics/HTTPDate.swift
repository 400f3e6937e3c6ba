/// A point in time as in HTTP messages, in seconds and UTC (RFC 9110 section 5.6.7).
package struct HTTPDate: Hashable, Comparable, Sendable {
    /// Seconds since 1970-01-01T00:00:00Z without leap seconds, within the years 0000…9999.
    package let secondsSinceEpoch: Int64

    /// Values outside the years 0000…9999, which HTTP cannot express, become the nearest value in that range.
    package init(secondsSinceEpoch: Int64) {
        self.secondsSinceEpoch = min(max(secondsSinceEpoch, HTTPDate.minSeconds), HTTPDate.maxSeconds)
    }

    /// 0000-01-01T00:00:00Z
    static let minSeconds: Int64 = -62_167_219_200
    /// 9999-12-31T23:59:59Z
    static let maxSeconds: Int64 = 253_402_300_799

    package static func < (left: HTTPDate, right: HTTPDate) -> Bool {
        left.secondsSinceEpoch < right.secondsSinceEpoch
    }

    /// The date as IMF-fixdate, e.g. `Sun, 06 Nov 1994 08:49:37 GMT`.
    package var serialized: String {
        let date = CivilDate(dayNumber: dayNumber)
        let secondOfDay = secondOfDay
        // Every response has a date, so the text is written with one allocation.
        return String(unsafeUninitializedCapacity: 29) { buffer in
            func write(_ text: String, count: Int, at start: Int) {
                text.withBytes { bytes in for offset in 0..<count { buffer[start + offset] = bytes[offset] } }
            }
            func write(_ number: Int, at places: Range<Int>) {
                var remaining = number
                for place in places.reversed() {
                    buffer[place] = UInt8(ascii: "0") + UInt8(remaining % 10)
                    remaining /= 10
                }
            }
            write("Sun, 06 Nov 1994 08:49:37 GMT", count: 29, at: 0)
            write(HTTPDate.dayNames[date.weekday], count: 3, at: 0)
            write(date.day, at: 5..<7)
            write(HTTPDate.monthNames[date.month - 1], count: 3, at: 8)
            write(date.year, at: 12..<16)
            write(secondOfDay / 3600, at: 17..<19)
            write(secondOfDay / 60 % 60, at: 20..<22)
            write(secondOfDay % 60, at: 23..<25)
            return 29
        }
    }

    /// The date as in RFC 3339 section 5.6, e.g. `1994-11-06T08:49:37Z`.
    package var internetDate: String {
        let date = CivilDate(dayNumber: dayNumber)
        let secondOfDay = secondOfDay
        return String(unsafeUninitializedCapacity: 20) { buffer in
            var end = 0
            func append(_ number: Int, digits: Int = 2, _ separator: Unicode.Scalar) {
                var remaining = number
                for place in (end..<end + digits).reversed() {
                    buffer[place] = UInt8(ascii: "0") + UInt8(remaining % 10)
                    remaining /= 10
                }
                end += digits
                buffer[end] = UInt8(ascii: separator)
                end += 1
            }
            append(date.year, digits: 4, "-")
            append(date.month, "-")
            append(date.day, "T")
            append(secondOfDay / 3600, ":")
            append(secondOfDay / 60 % 60, ":")
            append(secondOfDay % 60, "Z")
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
    /// The number of the month, 1 to 12.
    let month: Int
    /// The day of the month, 1 to 31.
    let day: Int

    /// Creates a day; `nil` when the month has no such day.
    init?(year: Int, month: Int, day: Int) {
        guard (1...12).contains(month), day >= 1, day <= CivilDate.lengthOfMonth(month, year: year) else { return nil }
        self.year = year
        self.month = month
        self.day = day
    }

    /// Creates the day with this number.
    ///
    /// The algorithm is `civil_from_days` of Howard Hinnant ("chrono-Compatible Low-Level Date Algorithms"). Its years
    /// begin in March, so the leap day is the last day of a year. Month m, where March is 0, begins at day (153 m + 2)
    /// / 5 of the year. An era has 400 years, which are 146,097 days.
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

extension HTTPDate {
    /// Parses an HTTP-date in any of its three forms (RFC 9110 section 5.6.7):
    /// `Sun, 06 Nov 1994 08:49:37 GMT`, `Sunday, 06-Nov-94 08:49:37 GMT`, `Sun Nov  6 08:49:37 1994`.
    ///
    /// The parser is strict: case, spaces and widths must be those of the grammar, the day must exist, and the day name
    /// must be right. A leap second (23:59:60) counts as the second after it.
    ///
    /// - Parameter now: The current time. A two-digit year means the latest year with these digits in which the date is
    ///   at most 50 years after this time.
    package init?(parsing value: String, relativeTo now: HTTPDate) {
        var scanner = FieldValueScanner(value.trimmingOptionalWhitespace)
        let name = String(decoding: scanner.run(where: \.isLetter), as: UTF8.self)
        guard let weekday = HTTPDate.dayNames.firstIndex(where: { $0 == name || $0.prefix(3) == name }) else {
            return nil
        }
        let isShort = name.utf8.count == 3
        let seconds: Int64?
        if scanner.consume(literal: ", ") {
            seconds =
                isShort
                ? HTTPDate.preferredForm(&scanner, weekday: weekday)
                : HTTPDate.twoDigitYearForm(&scanner, weekday: weekday, now: now)
        } else {
            seconds = isShort && scanner.consume(" ") ? HTTPDate.asctimeForm(&scanner, weekday: weekday) : nil
        }
        // Only a leap second at the end of the year 9999 exceeds the range of years.
        guard let seconds, scanner.isAtEnd, seconds <= HTTPDate.maxSeconds else { return nil }
        self.init(secondsSinceEpoch: seconds)
    }

    /// Parses a date of RFC 3339 section 5.6 in UTC, with or without a fraction of a second, which is ignored:
    /// `1994-11-06T08:49:37.000Z`.
    package init?(parsingInternetDate value: String) {
        var scanner = FieldValueScanner(value)
        guard let year = HTTPDate.number(&scanner, width: 4), scanner.consume("-"),
            let month = HTTPDate.number(&scanner, width: 2), scanner.consume("-"),
            let day = HTTPDate.number(&scanner, width: 2), scanner.consume("T"),
            let date = CivilDate(year: year, month: month, day: day), let time = HTTPDate.timeOfDay(&scanner)
        else { return nil }
        if scanner.consume(".") {
            guard !scanner.run(where: \.isDigit).isEmpty else { return nil }
        }
        guard scanner.consume("Z"), scanner.isAtEnd else { return nil }
        self.init(secondsSinceEpoch: Int64(date.dayNumber * 86_400 + time))
    }

    /// `06 Nov 1994 08:49:37 GMT`
    private static func preferredForm(_ scanner: inout FieldValueScanner, weekday: Int) -> Int64? {
        guard let day = number(&scanner, width: 2), scanner.consume(" "),
            let month = month(&scanner), scanner.consume(" "),
            let year = number(&scanner, width: 4), scanner.consume(" "),
            let date = CivilDate(year: year, month: month, day: day), date.weekday == weekday,
            let time = timeOfDay(&scanner), scanner.consume(literal: " GMT")
        else { return nil }
        return Int64(date.dayNumber * 86_400 + time)
    }

    /// `06-Nov-94 08:49:37 GMT`
    private static func twoDigitYearForm(
        _ scanner: inout FieldValueScanner, weekday: Int, now: HTTPDate
    ) -> Int64? {
        guard let day = number(&scanner, width: 2), scanner.consume("-"),
            let month = month(&scanner), scanner.consume("-"),
            let digits = number(&scanner, width: 2), scanner.consume(" "),
            let time = timeOfDay(&scanner), scanner.consume(literal: " GMT")
        else { return nil }
        let today = CivilDate(dayNumber: now.dayNumber)
        // The latest year with these digits that begins within 50 years. If the date itself is more than 50 years in
        // the future, the year is a century earlier.
        let latest = today.year + 50
        var year = latest - (latest - digits) % 100
        let isLater = (month, day, time) > (today.month, today.day, now.secondOfDay)
        if year > latest || (year == latest && isLater) { year -= 100 }
        guard (0...9999).contains(year), let date = CivilDate(year: year, month: month, day: day),
            date.weekday == weekday
        else { return nil }
        return Int64(date.dayNumber * 86_400 + time)
    }

    /// `Nov  6 08:49:37 1994`
    private static func asctimeForm(_ scanner: inout FieldValueScanner, weekday: Int) -> Int64? {
        guard let month = month(&scanner), scanner.consume(" "),
            let day = scanner.consume(" ") ? number(&scanner, width: 1) : number(&scanner, width: 2),
            scanner.consume(" "), let time = timeOfDay(&scanner), scanner.consume(" "),
            let year = number(&scanner, width: 4),
            let date = CivilDate(year: year, month: month, day: day), date.weekday == weekday
        else { return nil }
        return Int64(date.dayNumber * 86_400 + time)
    }

    /// Seconds since midnight of `hh:mm:ss`; 86,400 for a leap second.
    private static func timeOfDay(_ scanner: inout FieldValueScanner) -> Int? {
        guard let hour = number(&scanner, width: 2), scanner.consume(":"),
            let minute = number(&scanner, width: 2), scanner.consume(":"),
            let second = number(&scanner, width: 2),
            hour < 24, minute < 60, second < 60 || (hour == 23 && minute == 59 && second == 60)
        else { return nil }
        return hour * 3600 + minute * 60 + second
    }

    private static func month(_ scanner: inout FieldValueScanner) -> Int? {
        monthNames.firstIndex { scanner.consume(literal: $0) }.map { $0 + 1 }
    }

    private static func number(_ scanner: inout FieldValueScanner, width: Int) -> Int? {
        let digits = scanner.run(where: \.isDigit)
        guard digits.count == width else { return nil }
        return digits.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
    }
}
