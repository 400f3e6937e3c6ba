import Digests
import Foundation

/// Records in a file that grows at its end: each one is a line with a checksum before its JSON text.
///
/// A record that was cut off by a crash, or altered, is left out. It does not harm the next one: a line feed begins each
/// record, too.
enum RecordLines {
    /// The bytes to append for a record.
    static func line(_ record: some Encodable) throws -> [UInt8] {
        let text = [UInt8](try JSONEncoder().encode(record))
        return [0x0A] + checksum(text[...]) + [0x20] + text + [0x0A]
    }

    /// The records whose lines are complete.
    static func records<Record: Decodable>(_ type: Record.Type, in bytes: some Collection<UInt8>) -> [Record] {
        let decoder = JSONDecoder()
        return bytes.split(separator: 0x0A).compactMap { line in
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
        let digits = Array("0123456789abcdef".utf8)
        return digest.finalized().prefix(checksumSize / 2).flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 0x0F)]] }
    }
}
