import FoundationEssentials

/// A report as JSON.
package protocol JSONDocument: Encodable {}

extension JSONDocument {
    /// The JSON document, with sorted keys and a final newline.
    package func data() throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        return try encoder.encode(self) + Data([UInt8(ascii: "\n")])
    }
}
