import HTTPSemantics
import TestSupport
import Testing

@Suite struct DigestFieldTests {
    /// The SHA-256 of empty content.
    private static let empty: [UInt8] = [
        0xE3, 0xB0, 0xC4, 0x42, 0x98, 0xFC, 0x1C, 0x14, 0x9A, 0xFB, 0xF4, 0xC8, 0x99, 0x6F, 0xB9, 0x24, 0x27, 0xAE,
        0x41, 0xE4, 0x64, 0x9B,
        0x93, 0x4C, 0xA4, 0x95, 0x99, 0x1B, 0x78, 0x52, 0xB8, 0x55,
    ]
    private static let text = "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:"

    @Test("a digest is read, and written with the same value")
    func roundTrip() throws {
        let field = try #require(DigestField(fieldLines: [DigestFieldTests.text]))
        #expect(field[.sha256] == DigestFieldTests.empty)
        #expect(field[.sha512] == nil)
        #expect(field.serialized == DigestFieldTests.text)
        #expect(field == DigestField(values: [(algorithm: .sha256, bytes: DigestFieldTests.empty)]))
        #expect(Set([field, field]).count == 1)
        #expect(DigestAlgorithm.sha256.size == 32 && DigestAlgorithm.sha512.size == 64)
    }

    @Test("DIG-05: unknown algorithms are skipped, known ones are kept")
    func unknownAlgorithms() throws {
        let field = try #require(DigestField(fieldLines: ["foo=:AA==:, bar=5, md5=:AA==:", DigestFieldTests.text]))
        #expect(field.values.count == 1)
        #expect(field.values[0].algorithm == .sha256 && field.values[0].bytes == DigestFieldTests.empty)
    }

    @Test("DIG-05: a digest of the wrong length is kept and never matches")
    func wrongLength() throws {
        let field = try #require(DigestField(fieldLines: ["foo=:AA==:, sha-256=:AAAA:"]))
        #expect(field[.sha256] == [0, 0, 0])
    }

    @Test(
        "DIG-06: unparsable fields count as absent",
        arguments: [
            ["sha-256=abc"], ["sha-256"], ["sha-256=\"x\""], ["sha-256=(:AAAA:)"], ["sha-256=:A*:"], ["SHA-256=:AAAA:"],
            ["sha-256:=AAAA"], [""], [],
            ["sha-256=:AAAA:,"], ["sha-512=1, \(DigestFieldTests.text)"],
        ])
    func unparsable(lines: [String]) {
        #expect(DigestField(fieldLines: lines) == nil)
    }

    @Test("DIG-09: insecure algorithms are not used")
    func insecure() {
        #expect(DigestField(fieldLines: ["md5=:1B2M2Y8AsgTpgAmY7PhCfg==:"]) == nil)
        #expect(DigestField(fieldLines: ["sha=:2jmj7l5rSw0yVb/vlWAYkK/YBwk=:, crc32c=:AAAAAA==:"]) == nil)
    }

    @Test("if an algorithm occurs twice, its last digest counts")
    func lastDuplicateCounts() {
        #expect(DigestField(fieldLines: ["sha-256=:AAAA:", DigestFieldTests.text])?[.sha256] == DigestFieldTests.empty)
    }

    @Test(
        "DIG-08: weight 0 excludes an algorithm, the highest weight is preferred, and sha-256 among equal weights",
        arguments: [
            ("sha-256=0, sha-512=1", .sha512), ("sha-512=3, sha-256=10", .sha256), ("sha-256=1, sha-512=2", .sha512),
            ("sha-512=5, sha-256=5", .sha256), ("sha-256=0", nil), ("md5=10, sha-512=1", .sha512), ("md5=10", nil),
            ("", nil),
            ("sha-256=11, sha-512=1", .sha512), ("sha-256=-1", nil), ("sha-256=1.0, sha-512=1", .sha512),
            ("sha-256, sha-512=1", .sha512),
            ("sha-256=(1), sha-512=0", nil), ("sha-256=1;x", .sha256),
        ] as [(String, DigestAlgorithm?)])
    func preferences(value: String, preferred: DigestAlgorithm?) throws {
        let preferences = try #require(DigestPreferences(fieldLines: [value]))
        #expect(preferences.preferred == preferred)
    }

    @Test("preferences that cannot be parsed count as absent")
    func unparsablePreferences() {
        for lines in [[], ["sha-256="], ["SHA-256=1"], ["sha-256=1,"], ["="]] {
            #expect(DigestPreferences(fieldLines: lines) == nil)
        }
        #expect(DigestPreferences(fieldLines: ["sha-256=1", "sha-512=9"])?.preferred == .sha512)
    }

    @Test(arguments: SeededGenerator.seeds)
    func arbitraryValuesNeverCrash(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        for index in 0..<SeededGenerator.count(2_000) {
            let value =
                index % 3 == 0 ? generator.unicode(upTo: 20) : generator.mutate(DigestFieldTests.text + ", sha-512=5")
            if let field = DigestField(fieldLines: [value]) {
                #expect(DigestField(fieldLines: [field.serialized]) == field, "\(value)")
            }
            _ = DigestPreferences(fieldLines: [value])?.preferred
        }
    }
}
