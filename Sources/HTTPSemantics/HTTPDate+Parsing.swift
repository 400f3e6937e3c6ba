extension HTTPDate {
    /// Parses an HTTP-date in any of its three forms (RFC 9110 §5.6.7):
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
        guard let seconds, scanner.isAtEnd, seconds <= HTTPDate.maximumSeconds else { return nil }
        self.init(secondsSinceEpoch: seconds)
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
