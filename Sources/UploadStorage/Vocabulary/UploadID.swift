import Digests
import SystemCalls

/// The name of an upload: 128 random bits from the kernel. The name alone gives access to the upload.
public struct UploadID: Hashable, Sendable {
    private let high: UInt64
    private let low: UInt64

    /// Creates a random ID.
    public init() {
        let generator = KernelRandom()
        high = generator.next()
        low = generator.next()
    }

    init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }

    /// Parses the form of ``text``, exactly: 32 lower-case hexadecimal digits.
    public init?(parsing text: some StringProtocol) {
        guard text.utf8.count == 32 else { return nil }
        var words: (UInt64, UInt64) = (0, 0)
        for digit in text.utf8 {
            let value: UInt8
            switch digit {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): value = digit - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): value = digit - UInt8(ascii: "a") + 10
            default: return nil
            }
            words = (words.0 << 4 | words.1 >> 60, words.1 << 4 | UInt64(value))
        }
        (high, low) = words
    }

    init?(bytes: [UInt8]) {
        guard bytes.count == 16 else { return nil }
        high = bytes[..<8].reduce(0) { $0 << 8 | UInt64($1) }
        low = bytes[8...].reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// The 16 bytes, as the catalog stores them.
    var bytes: [UInt8] {
        [UInt8](unsafeUninitializedCapacity: 16) { buffer, count in
            for index in 0..<8 {
                buffer[index] = UInt8(truncatingIfNeeded: high >> (56 - 8 * index))
                buffer[index + 8] = UInt8(truncatingIfNeeded: low >> (56 - 8 * index))
            }
            count = 16
        }
    }

    /// A text that identifies the upload and gives no access to it: 32 lower-case hexadecimal digits.
    package var fingerprint: String { fingerprint(bytes: 16) }

    private func fingerprint(bytes count: Int) -> String {
        var digest = RunningDigest(.sha256)
        bytes.withUnsafeBytes { digest.update($0) }
        return Array(digest.finalized().prefix(count)).hexadecimal
    }

    /// The secret in the form of URLs: 32 lower-case hexadecimal digits.
    public var text: String {
        String(unsafeUninitializedCapacity: 32) { text in
            for index in 0..<32 {
                let digit = UInt8(truncatingIfNeeded: (index < 16 ? high : low) >> UInt64(60 - index % 16 * 4)) & 0xF
                text[index] = digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") - 10 + digit
            }
            return 32
        }
    }
}

extension UploadID: CustomStringConvertible, CustomDebugStringConvertible {
    /// A text for logs that identifies the upload and gives no access.
    public var description: String { "upload:" + fingerprint(bytes: 4) }

    /// A short form for logs, which gives no access.
    public var debugDescription: String { description }
}
