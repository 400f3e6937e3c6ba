import HTTPSemantics
import TestSupport
import Testing

@Suite struct HTTPDateTests {
    /// 2026-07-01T10:00:00Z
    private static let now = HTTPDate(secondsSinceEpoch: 1_782_900_000)

    private func parse(_ value: String, now: HTTPDate = HTTPDateTests.now) -> Int64? {
        HTTPDate(parsing: value, relativeTo: now)?.secondsSinceEpoch
    }

    @Test(
        "All three forms of RFC 9110 section 5.6.7 are read",
        arguments: [
            ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777), ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
            ("Sun Nov  6 08:49:37 1994", 784_111_777), ("Wed Nov 16 08:49:37 1994", 784_975_777),
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0), (" Thu, 01 Jan 1970 00:00:01 GMT\t", 1),
            ("Wed, 31 Dec 1969 23:59:59 GMT", -1), ("Thu, 29 Feb 2024 12:00:00 GMT", 1_709_208_000),
            ("Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799), ("Sat, 01 Jan 0000 00:00:00 GMT", -62_167_219_200),
            ("Sat, 31 Dec 2016 23:59:60 GMT", 1_483_228_800), ("Tue, 29 Feb 2000 00:00:00 GMT", 951_782_400),
        ] as [(String, Int64)])
    func parsed(value: String, seconds: Int64) {
        #expect(parse(value) == seconds)
    }

    @Test(
        "A date is written as in RFC 3339, too",
        arguments: [
            (784_111_777, "1994-11-06T08:49:37Z"), (-1, "1969-12-31T23:59:59Z"), (951_782_400, "2000-02-29T00:00:00Z"),
            (.max, "9999-12-31T23:59:59Z"), (.min, "0000-01-01T00:00:00Z"),
        ] as [(Int64, String)])
    func internetDate(seconds: Int64, text: String) {
        let date = HTTPDate(secondsSinceEpoch: seconds)
        #expect(date.internetDate == text)
        #expect(HTTPDate(parsingInternetDate: text) == date)
        #expect(HTTPDate(parsingInternetDate: text.dropLast() + ".123456Z") == date)
    }

    @Test(
        "A malformed date of RFC 3339, or one with an offset, is refused",
        arguments: [
            "", "1994-11-06", "1994-11-06T08:49:37", "1994-11-06T08:49:37.Z", "1994-11-06T08:49:37+00:00",
            "1994-02-29T00:00:00Z", "94-11-06T08:49:37Z", "1994-11-06T24:00:00Z", "1994-11-06T08:49:37Zx",
        ])
    func malformedInternetDate(text: String) {
        #expect(HTTPDate(parsingInternetDate: text) == nil)
    }

    @Test(arguments: [
        "", "Sun", "sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 gmt",
        "Sun, 06 Nov 1994 08:49:37 UTC", "Sun, 06 Nov 1994 08:49:37", "Sun, 6 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 94 08:49:37 GMT",
        "Sun,06 Nov 1994 08:49:37 GMT", "Sun,  06 Nov 1994 08:49:37 GMT", "Mon, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:00:00 GMT", "Sun, 06 Nov 1994 08:60:37 GMT", "Sun, 06 Nov 1994 08:49:60 GMT",
        "Sun, 06 Nov 1994 8:49:37 GMT", "Sun, 00 Nov 1994 08:49:37 GMT", "Thu, 31 Nov 1994 08:49:37 GMT",
        "Wed, 29 Feb 2023 00:00:00 GMT", "Thu, 29 Feb 1900 00:00:00 GMT", "Sun, 06 Nov 1994 08:49:37 GMT x",
        "Sun, 06-Nov-94 08:49:37 GMT", "Sunday, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-1994 08:49:37 GMT",
        "Monday, 06-Nov-94 08:49:37 GMT", "Sun Nov 6 08:49:37 1994", "Sun Nov 06 08:49:37 94",
        "Sun Nov   6 08:49:37 1994",
        "Sun Nov  6 08:49:37 1994 GMT", "Sunday Nov  6 08:49:37 1994", "Sun, 06 Nov +994 08:49:37 GMT", "784111777",
        "Fri, 31 Dec 9999 23:59:60 GMT", "Sun, 06 Nov 1994 08:49:37 GMT, Sun, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 19940 08:49:37 GMT",
    ])
    func refused(value: String) {
        #expect(parse(value) == nil)
    }

    @Test func twoDigitDayInAsctimeMayBeZeroPadded() {
        #expect(parse("Sun Nov 06 08:49:37 1994") == 784_111_777)
    }

    @Test("A two-digit year is at most 50 years in the future")
    func fiftyYears() throws {
        // 50 years later is Wednesday, 2076-07-01T10:00:00Z.
        #expect(parse("Wednesday, 01-Jul-76 10:00:00 GMT") == 3_360_823_200)
        #expect(parse("Thursday, 01-Jul-76 10:00:01 GMT") == 205_063_201)
        #expect(parse("Wednesday, 01-Jul-76 10:00:01 GMT") == nil)
        #expect(parse("Friday, 01-Jan-99 00:00:00 GMT") == 915_148_800)
        #expect(parse("Wednesday, 01-Jul-26 10:00:00 GMT") == HTTPDateTests.now.secondsSinceEpoch)
        let y2090 = HTTPDate(secondsSinceEpoch: 3_786_912_000)
        #expect(parse("Wednesday, 01-Jan-10 00:00:00 GMT", now: y2090) == 4_417_977_600)
    }

    @Test("a date is written in the preferred form, within the years 0000 to 9999")
    func serialized() {
        #expect(HTTPDate(secondsSinceEpoch: 784_111_777).serialized == "Sun, 06 Nov 1994 08:49:37 GMT")
        #expect(HTTPDate(secondsSinceEpoch: -1).serialized == "Wed, 31 Dec 1969 23:59:59 GMT")
        #expect(HTTPDate(secondsSinceEpoch: .max).serialized == "Fri, 31 Dec 9999 23:59:59 GMT")
        #expect(HTTPDate(secondsSinceEpoch: .min).serialized == "Sat, 01 Jan 0000 00:00:00 GMT")
        #expect(HTTPDate(secondsSinceEpoch: 1) > HTTPDate(secondsSinceEpoch: 0))
    }

    @Test("Dates in all years 0000…9999 have the right name of the day and round-trip")
    func allYears() {
        // The days are counted here one by one, independently of the arithmetic under test.
        let names = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        let days = ["Sat", "Sun", "Mon", "Tue", "Wed", "Thu", "Fri"]
        var count = 0
        for year in 0...9999 {
            let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
            for (month, length) in [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31].enumerated() {
                // All days are checked in years divisible by 100; in other years, only the first and the last days of
                // January and February, 1 March and 31 December.
                for day in 1...length {
                    defer { count += 1 }
                    let isBoundaryDay =
                        (day == 1 && [0, 1, 2].contains(month)) || (day == length && [0, 1, 11].contains(month))
                    guard year % 100 == 0 || isBoundaryDay else { continue }
                    let seconds = -62_167_219_200 + Int64(count) * 86_400 + Int64(count % 86_400)
                    let date = HTTPDate(secondsSinceEpoch: seconds)
                    let prefix = "\(days[count % 7]), \(day < 10 ? "0" : "")\(day) \(names[month]) "
                    let text = date.serialized
                    guard text.hasPrefix(prefix), parse(text) == seconds else {
                        Issue.record("\(year)-\(month + 1)-\(day): \(text)")
                        return
                    }
                }
            }
        }
        #expect(count == 3_652_425)
    }

    @Test(arguments: SeededGenerator.seeds)
    func roundTrip(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<SeededGenerator.count(5_000) {
            let seconds = Int64.random(in: -62_167_219_200...253_402_300_799, using: &generator)
            let date = HTTPDate(secondsSinceEpoch: seconds)
            #expect(HTTPDate(parsing: date.serialized, relativeTo: HTTPDateTests.now) == date)
        }
    }

    @Test(arguments: SeededGenerator.seeds)
    func arbitraryValuesNeverCrash(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let samples = [
            "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
            "Fri, 31 Dec 9999 23:59:60 GMT",
        ]
        for _ in 0..<SeededGenerator.count(4_000) {
            let value = generator.mutate(samples.randomElement(using: &generator) ?? "")
            let now = HTTPDate(secondsSinceEpoch: Int64.random(in: .min ... .max, using: &generator))
            guard let date = HTTPDate(parsing: value, relativeTo: now) else { continue }
            #expect(HTTPDate(parsing: date.serialized, relativeTo: now) == date, "\(value)")
        }
    }
}
