import Digests
import TestSupport

/// Bytes that look random, are the same in every run, and differ at every offset.
package enum Payload {
    /// - Parameter seed: determines all of the bytes.
    package static func bytes(_ count: Int, seed: UInt64 = 1) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(count + 8)
        var generator = SeededGenerator(seed: seed &* 0x9E37_79B9_7F4A_7C15)
        while result.count < count {
            let word = generator.next()
            withUnsafeBytes(of: word.littleEndian) { result.append(contentsOf: $0) }
        }
        result.removeLast(result.count - count)
        return result
    }
}

extension Collection<UInt8> {
    package func digest(_ algorithm: Algorithm = .sha256) -> [UInt8] {
        var digest = RunningDigest(algorithm)
        Array(self).withUnsafeBytes { digest.update($0) }
        return digest.finalized()
    }

    /// The SHA-256 of the bytes in hexadecimal.
    package var sha256: String {
        digest().map { byte in
            let text = String(byte, radix: 16)
            return text.count == 1 ? "0" + text : text
        }.joined()
    }

    /// The value of a digest field (RFC 9530).
    package func digestField(_ algorithm: Algorithm = .sha256) -> String {
        "\(algorithm.rawValue)=:\(digest(algorithm).base64):"
    }

    /// The bytes in Base64 (RFC 4648 section 4).
    package var base64: String {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
        var text: [UInt8] = []
        let bytes = Array(self)
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<Swift.min(start + 3, bytes.count)]
            let bits = group.reduce(0) { $0 << 8 | UInt32($1) } << (8 * UInt32(3 - group.count))
            for place in 0..<4 {
                text.append(place <= group.count ? alphabet[Int(bits >> (18 - 6 * UInt32(place))) & 63] : 0x3D)
            }
        }
        return String(decoding: text, as: UTF8.self)
    }
}
