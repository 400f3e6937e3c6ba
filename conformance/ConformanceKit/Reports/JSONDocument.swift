import FoundationEssentials

/// A report for programs.
package protocol JSONDocument: Encodable {}

extension JSONDocument {
    /// The document, with sorted keys and a line end.
    package func data() throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        return try encoder.encode(self) + Data([0x0A])
    }
}
