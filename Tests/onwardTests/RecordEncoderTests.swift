import Foundation
import SystemCalls
import Testing

@testable import onward

@Suite("The encoder of records")
struct RecordEncoderTests {
    private struct Value: Codable, Hashable {
        enum Kind: String, Codable { case first, second }

        var text = "a \"quoted\" \\ text / with \u{0}\u{1F}\n\t\u{7F}, ä, \u{2028} and 🙂"
        var numbers: [Int64] = [.min, -1, 0, .max]
        var large = UInt64.max
        var truths = [true, false]
        var missing: Int?
        var pairs = [["name", "value"], [], [""]]
        var kind = Kind.second
        var id = UUID()
        var names = ["b": 1, "a": 2]
        var empty: [String: String] = [:]
        var path = FilePath("/a/b c")
        var bytes = FilePath([47, 0xFF])
        var inner: [Value] = []
    }

    @Test("a decoder of JSON reads the same values")
    func decoded() throws {
        var value = Value()
        value.inner = [Value(inner: [Value()]), Value()]
        let bytes = try RecordEncoder.encode(value)
        #expect(try JSONDecoder().decode(Value.self, from: Data(bytes)) == value)
        #expect(!bytes.contains(UInt8(ascii: "\n")))
    }

    @Test("fractions are refused")
    func fraction() {
        #expect(throws: EncodingError.self) { try RecordEncoder.encode(["a": 0.5]) }
    }
}
