import Digests
import Foundation

/// Records in a file that grows at its end: each one is a line with a checksum before its JSON text.
///
/// A record that was cut off by a crash, or altered, is left out. It does not harm the next one: each record also
/// begins with a line feed.
enum RecordLines {
    private static let encoder = {
        let encoder = JSONEncoder()
        // Nearly all texts of a record are paths and URLs.
        encoder.outputFormatting = .withoutEscapingSlashes
        return encoder
    }()

    /// The bytes to append for a record.
    static func line(_ record: some Encodable) throws -> [UInt8] {
        let text = [UInt8](try encoder.encode(record))
        return [UInt8(ascii: "\n")] + checksum(text[...]) + [UInt8(ascii: " ")] + text + [UInt8(ascii: "\n")]
    }

    /// The records whose lines are complete.
    static func records<Record: Decodable>(_ type: Record.Type, in bytes: some Collection<UInt8>) -> [Record] {
        let decoder = JSONDecoder()
        return bytes.split(separator: UInt8(ascii: "\n")).compactMap { line in
            let text = Array(line.dropFirst(checksumSize + 1))
            guard line.prefix(checksumSize).elementsEqual(checksum(text[...])) else { return nil }
            return try? decoder.decode(type, from: Data(text))
        }
    }

    private static let checksumSize = 8

    /// The first digits of the SHA-256.
    private static func checksum(_ text: ArraySlice<UInt8>) -> [UInt8] {
        var digest = RunningDigest(.sha256)
        text.withUnsafeBytes { digest.update($0) }
        return Array(Array(digest.finalized().prefix(checksumSize / 2)).hexadecimal.utf8)
    }
}
