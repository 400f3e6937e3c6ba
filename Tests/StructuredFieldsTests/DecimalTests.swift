import StructuredFields
import Testing

@Suite("Decimals")
struct DecimalTests {
    @Test(
        "Decimals are written in canonical form",
        arguments: [
            (0, "0.0"), (1, "0.001"), (10, "0.01"), (100, "0.1"), (1000, "1.0"), (-1, "-0.001"), (-500, "-0.5"),
            (12_300, "12.3"), (12_345, "12.345"), (1_050, "1.05"), (999_999_999_999_999, "999999999999.999"),
            (-999_999_999_999_999, "-999999999999.999"),
        ])
    func canonical(thousandths: Int, text: String) throws {
        let decimal = try #require(Decimal(thousandths: thousandths))
        #expect(decimal.description == text)
        #expect(try Item(.decimal(decimal)).serialized() == text)
        #expect(try Item(parsing: text).value == .decimal(decimal))
    }

    @Test("STF-03: 5.0 is a Decimal, not an Integer")
    func wholeDecimal() throws {
        #expect(try Item(parsing: "5.0").value == Decimal(thousandths: 5000).map(BareItem.decimal))
        #expect(try Item(parsing: "-0.0").value == Decimal(thousandths: 0).map(BareItem.decimal))
    }

    @Test(
        "A Decimal has at most 12 digits before the point",
        arguments: [1_000_000_000_000_000, -1_000_000_000_000_000, .max, .min])
    func outOfRange(thousandths: Int) {
        #expect(Decimal(thousandths: thousandths) == nil)
    }

    @Test(
        "Ties round to the even digit",
        arguments: [
            (0.0005, 0), (0.0015, 2), (0.0025, 2), (-0.0015, -2), (-0.0025, -2), (9.8765, 9876), (12.3, 12_300),
            (1e11, 100_000_000_000_000),
        ])
    func rounding(value: Double, thousandths: Int) {
        #expect(Decimal(rounding: value)?.thousandths == thousandths)
    }

    @Test(
        "Values that are too large, infinite or no number are not rounded",
        arguments: [1e12, -1e12, 999_999_999_999.9996, 1e300, .infinity, -.infinity, .nan])
    func notRounding(value: Double) {
        #expect(Decimal(rounding: value) == nil)
    }

    @Test("Decimals are ordered by value")
    func order() throws {
        let decimals = [-2000, -1, 0, 1, 999, 1000].compactMap(Decimal.init(thousandths:))
        #expect(decimals.count == 6)
        #expect(decimals.shuffled().sorted() == decimals)
    }
}
