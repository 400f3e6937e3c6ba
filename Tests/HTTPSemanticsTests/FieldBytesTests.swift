import TestSupport
import Testing

@testable import HTTPSemantics

@Suite struct FieldBytesTests {
    private static func text(_ bytes: [UInt8]) -> String { bytes.withUnsafeBytes { String(fieldBytes: $0) } }

    @Test(
        "UTF-8 is the text that it encodes; every other byte is a scalar of its own",
        arguments: [
            ([], ""), (Array("plain, \t\"text\"".utf8), "plain, \t\"text\""),
            (Array("é €\u{1F600}".utf8), "é €\u{1F600}"),
            ([0x61, 0xE9, 0x62], "a\u{10FFE9}b"), ([0xC3], "\u{10FFC3}"), ([0xC3, 0xA9, 0xC3], "é\u{10FFC3}"),
            ([0xE2, 0x82], "\u{10FFE2}\u{10FF82}"), ([0xED, 0xA0, 0x80], "\u{10FFED}\u{10FFA0}\u{10FF80}"),
            ([0xC0, 0xAF], "\u{10FFC0}\u{10FFAF}"), ([0xE0, 0x9F, 0xBF], "\u{10FFE0}\u{10FF9F}\u{10FFBF}"),
            ([0xF4, 0x90, 0x80, 0x80], "\u{10FFF4}\u{10FF90}\u{10FF80}\u{10FF80}"),
            ([0xF4, 0x8F, 0xBD, 0xBF], "\u{10FF7F}"),
            // An encoded scalar of the reserved range.
            ([0xF4, 0x8F, 0xBE, 0x80], "\u{10FFF4}\u{10FF8F}\u{10FFBE}\u{10FF80}"),
            ([0xF4, 0x8F, 0xBF, 0xBF], "\u{10FFF4}\u{10FF8F}\u{10FFBF}\u{10FFBF}"),
        ] as [([UInt8], String)])
    func parsed(bytes: [UInt8], text: String) {
        #expect(Self.text(bytes).utf8.elementsEqual(text.utf8))
        #expect(Self.text(bytes).fieldBytes == bytes)
    }

    @Test("any bytes are the same after they were text", arguments: SeededGenerator.seeds)
    func roundTrip(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<SeededGenerator.count(20_000) {
            let bytes = generator.fieldBytes(upTo: 24)
            let text = Self.text(bytes)
            #expect(text.fieldBytes == bytes, "\(bytes)")
            #expect(text.fieldByteCount == bytes.count)
            #expect(
                Fields.isValidValue(text) == bytes.allSatisfy { $0 == 0x09 || $0 >= 0x20 && $0 != 0x7F }, "\(bytes)")
            #expect(text.hasOpaqueBytes == (String(validating: bytes, as: UTF8.self)?.hasOpaqueBytes ?? true))
            let terminated = text.withFieldCString { String(cString: $0).utf8.count }
            #expect(bytes.contains(0) || bytes.contains { $0 >= 0x80 } || terminated == bytes.count)
        }
    }

    @Test("text for people has no scalars of the reserved range", arguments: SeededGenerator.seeds)
    func repaired(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<SeededGenerator.count(5_000) {
            let bytes = generator.fieldBytes(upTo: 24)
            // An encoded scalar of the range is one that the sender has chosen.
            if String(validating: bytes, as: UTF8.self) == nil, !bytes.contains(0xF4) {
                #expect(!Self.text(bytes).repairedFieldText.hasOpaqueBytes, "\(bytes)")
                #expect(!Self.text(bytes).fieldTextInLatin1.hasOpaqueBytes, "\(bytes)")
            }
        }
        #expect(Self.text([0x63, 0x61, 0x66, 0xE9]).repairedFieldText == "caf\u{FFFD}")
        #expect(Self.text([0x63, 0x61, 0x66, 0xE9]).fieldTextInLatin1 == "café")
    }
}

extension SeededGenerator {
    /// Bytes, many of which are parts of UTF-8, complete or not.
    mutating func fieldBytes(upTo length: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        for _ in 0..<Int.random(in: 0...length, using: &self) {
            switch Int.random(in: 0..<8, using: &self) {
            case 0: bytes += "é".utf8
            case 1: bytes += "\u{1F600}".utf8
            case 2: bytes += [0xF4, 0x8F, pick([0xBD, 0xBE, 0xBF]), UInt8.random(in: 0x7F...0xC0, using: &self)]
            case 3:
                bytes += pick([
                    [0xE2, 0x82], [0xE0, 0x9F, 0xBF], [0xC0, 0xAF], [0xED, 0xA0, 0x80], [0xF4, 0x90],
                    [0xF4, 0x8F, 0xBE],
                ])
            case 4: bytes.append(UInt8.random(in: 0x80...0xFF, using: &self))
            case 5: bytes.append(UInt8.random(in: 0...0xFF, using: &self))
            default: bytes.append(UInt8.random(in: 0x20...0x7E, using: &self))
            }
        }
        return bytes
    }
}
