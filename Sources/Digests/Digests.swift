import CNettle

/// A digest that is updated with bytes, and whose state another process can restore later.
///
/// ``finalized()`` and ``encodedState()`` do not change the digest, so both can be called at any point of a stream.
package struct RunningDigest: Sendable {
    enum Context: Sendable {
        case sha256(sha256_ctx)
        case sha512(sha512_ctx)
    }

    var context: Context

    /// Creates a digest before its first byte.
    package init(_ algorithm: Algorithm) {
        switch algorithm {
        case .sha256: context = .sha256(.initial())
        case .sha512: context = .sha512(.initial())
        }
    }

    package var algorithm: Algorithm {
        switch context {
        case .sha256: .sha256
        case .sha512: .sha512
        }
    }

    /// The number of bytes with which the digest was updated.
    package var count: UInt64 {
        switch context {
        case .sha256(let state): state.byteCount
        case .sha512(let state): state.byteCount
        }
    }

    /// Updates the digest with the bytes that follow.
    package mutating func update(_ bytes: UnsafeRawBufferPointer) {
        switch context {
        case .sha256(var state):
            state.absorb(bytes)
            context = .sha256(state)
        case .sha512(var state):
            state.absorb(bytes)
            context = .sha512(state)
        }
    }

    /// The digest of the bytes so far: 32 bytes for SHA-256, 64 for SHA-512.
    package func finalized() -> [UInt8] {
        switch context {
        case .sha256(var state): state.finish()
        case .sha512(var state): state.finish()
        }
    }
}

/// A hash algorithm, named as in the registry of RFC 9530 section 5.
package enum Algorithm: String, Sendable, CaseIterable {
    case sha256 = "sha-256"
    case sha512 = "sha-512"
}

extension RunningDigest {
    private static let version: UInt8 = 1

    /// The state in a form that depends on neither machine nor library, at most 201 bytes.
    ///
    /// The parts are, in this order: version (1 byte, 1), algorithm (1 byte: 1 for SHA-256, 2 for SHA-512), the eight
    /// state words of FIPS 180-4 section 6 (4 or 8 bytes each), the count of bytes in the digest (8 bytes), and the
    /// last bytes, which do not fill a block yet (their number is the count modulo 64 or 128). Integers are big-endian.
    package func encodedState() -> [UInt8] {
        switch context {
        case .sha256(let state): [Self.version, Self.code(of: .sha256)] + state.encoded
        case .sha512(let state): [Self.version, Self.code(of: .sha512)] + state.encoded
        }
    }

    /// Continues from a state that ``encodedState()`` returned.
    ///
    /// Returns `nil` for any other bytes: an unknown version or algorithm, a length that contradicts the count, a count
    /// above 2^61 - 1 bytes, or state words that differ from the initial ones although the count is less than a block.
    package init?(encodedState: [UInt8]) {
        guard encodedState.count > 2, encodedState[0] == Self.version,
            let algorithm = Algorithm.allCases.first(where: { Self.code(of: $0) == encodedState[1] })
        else { return nil }
        switch algorithm {
        case .sha256:
            guard let state = sha256_ctx(encoded: encodedState[2...]) else { return nil }
            context = .sha256(state)
        case .sha512:
            guard let state = sha512_ctx(encoded: encodedState[2...]) else { return nil }
            context = .sha512(state)
        }
    }

    private static func code(of algorithm: Algorithm) -> UInt8 {
        switch algorithm {
        case .sha256: 1
        case .sha512: 2
        }
    }
}

/// The operations and the state of nettle's hash contexts that ``RunningDigest`` uses.
protocol HashContext: Sendable {
    associatedtype Word: FixedWidthInteger & UnsignedInteger & Sendable
    /// A tuple of words.
    associatedtype State
    /// A tuple of bytes.
    associatedtype Block

    /// The number of bytes in a block.
    static var blockSize: Int { get }

    /// The context before the first byte.
    static func initial() -> Self

    /// The eight words of the chaining value, in the machine's byte order.
    var state: State { get set }

    /// The number of complete blocks that have been hashed.
    var blockCount: UInt64 { get set }

    /// The current block. Its first ``index`` bytes are used.
    var block: Block { get set }

    /// The number of last bytes that do not fill a block yet: always less than ``blockSize``.
    var index: UInt32 { get set }

    mutating func absorb(_ bytes: UnsafeRawBufferPointer)

    /// Returns the digest and resets the context.
    mutating func finish() -> [UInt8]
}

extension HashContext {
    var byteCount: UInt64 { blockCount &* UInt64(Self.blockSize) &+ UInt64(index) }

    /// The elements of ``state``.
    var words: [Word] {
        get { withUnsafeBytes(of: state) { Array($0.bindMemory(to: Word.self)) } }
        set {
            withUnsafeMutableBytes(of: &state) { target in
                newValue.withUnsafeBytes {
                    target.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0.prefix(target.count)))
                }
            }
        }
    }

    /// The last bytes, which do not fill a block yet.
    var partialBlock: [UInt8] {
        get { withUnsafeBytes(of: block) { Array($0.prefix(Int(index))) } }
        set {
            withUnsafeMutableBytes(of: &block) { $0.copyBytes(from: newValue.prefix($0.count)) }
            index = UInt32(newValue.count)
        }
    }
}

extension HashContext {
    static var wordCount: Int { 8 }

    /// The maximum length of a SHA-256 message in bytes (FIPS 180-4 section 1). It is used for SHA-512 as well.
    static var maxByteCount: UInt64 { (1 << 61) - 1 }

    /// The state words, the count of bytes (8 bytes) and the partial block. Integers are big-endian.
    var encoded: [UInt8] {
        words.flatMap(\.bigEndianBytes) + byteCount.bigEndianBytes + partialBlock
    }

    /// Decodes the value of ``encoded``; returns `nil` for bytes that ``encoded`` never returns.
    init?(encoded: ArraySlice<UInt8>) {
        let wordSize = Word.bitWidth / 8
        let wordsSize = wordSize * Self.wordCount
        guard encoded.count >= wordsSize + 8 else { return nil }
        let words = (0..<Self.wordCount).map { index in
            Word(bigEndianBytes: encoded.dropFirst(index * wordSize).prefix(wordSize))
        }
        let count = UInt64(bigEndianBytes: encoded.dropFirst(wordsSize).prefix(8))
        let partialBlock = encoded.dropFirst(wordsSize + 8)
        let (blockCount, remainder) = count.quotientAndRemainder(dividingBy: UInt64(Self.blockSize))
        guard count <= Self.maxByteCount, partialBlock.count == Int(remainder) else { return nil }
        var context = Self.initial()
        // The words do not change before the first complete block.
        guard blockCount > 0 || words == context.words else { return nil }
        context.words = words
        context.blockCount = blockCount
        context.partialBlock = Array(partialBlock)
        self = context
    }
}

extension FixedWidthInteger {
    fileprivate var bigEndianBytes: [UInt8] {
        stride(from: Self.bitWidth - 8, through: 0, by: -8).map { UInt8(truncatingIfNeeded: self >> $0) }
    }

    fileprivate init(bigEndianBytes bytes: some Sequence<UInt8>) {
        self = bytes.reduce(0) { $0 << 8 | Self($1) }
    }
}

extension sha256_ctx: HashContext {
    typealias Word = UInt32

    static var blockSize: Int { Int(SHA256_BLOCK_SIZE) }

    static func initial() -> sha256_ctx {
        var context = sha256_ctx()
        nettle_sha256_init(&context)
        return context
    }

    var blockCount: UInt64 {
        get { count }
        set { count = newValue }
    }

    mutating func absorb(_ bytes: UnsafeRawBufferPointer) {
        guard let start = bytes.baseAddress else { return }
        nettle_sha256_update(&self, bytes.count, start)
    }

    mutating func finish() -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: Int(SHA256_DIGEST_SIZE))
        nettle_sha256_digest(&self, digest.count, &digest)
        return digest
    }
}

extension sha512_ctx: HashContext {
    typealias Word = UInt64

    static var blockSize: Int { Int(SHA512_BLOCK_SIZE) }

    static func initial() -> sha512_ctx {
        var context = sha512_ctx()
        nettle_sha512_init(&context)
        return context
    }

    /// The upper half of nettle's count stays zero, because a message has fewer than 2^64 blocks.
    var blockCount: UInt64 {
        get { count_low }
        set { count_low = newValue }
    }

    mutating func absorb(_ bytes: UnsafeRawBufferPointer) {
        guard let start = bytes.baseAddress else { return }
        nettle_sha512_update(&self, bytes.count, start)
    }

    mutating func finish() -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: Int(SHA512_DIGEST_SIZE))
        nettle_sha512_digest(&self, digest.count, &digest)
        return digest
    }
}

/// Message authentication codes (RFC 2104).
package enum MessageAuthentication {
    /// Computes the HMAC-SHA256 of `bytes`.
    /// - Returns: 32 bytes.
    package static func sha256(of bytes: [UInt8], key: [UInt8]) -> [UInt8] {
        var context = hmac_sha256_ctx()
        nettle_hmac_sha256_set_key(&context, key.count, key)
        nettle_hmac_sha256_update(&context, bytes.count, bytes)
        var code = [UInt8](repeating: 0, count: Int(SHA256_DIGEST_SIZE))
        nettle_hmac_sha256_digest(&context, code.count, &code)
        return code
    }
}

/// MD5 (RFC 1321), only for protocols that require it as a checksum.
package enum MD5 {
    /// Computes the MD5 digest of `bytes`.
    /// - Returns: 16 bytes.
    package static func digest(of bytes: [UInt8]) -> [UInt8] {
        var context = md5_ctx()
        nettle_md5_init(&context)
        nettle_md5_update(&context, bytes.count, bytes)
        var digest = [UInt8](repeating: 0, count: Int(MD5_DIGEST_SIZE))
        nettle_md5_digest(&context, digest.count, &digest)
        return digest
    }
}

extension UInt64 {
    /// The number of hexadecimal digits without leading zeros; 1 for 0.
    package var hexadecimalWidth: Int { Swift.max(1, (67 - leadingZeroBitCount) / 4) }

    /// Writes the last `count` hexadecimal digits of the number, in lower case.
    package func writeHexadecimal(_ count: Int, to output: UnsafeMutablePointer<UInt8>) {
        for index in 0..<count {
            output[index] = UInt8(truncatingIfNeeded: self &>> UInt64(4 * (count - 1 - index))).hexadecimalDigit
        }
    }
}

extension [UInt8] {
    /// The bytes in hexadecimal: two lower-case digits for each byte.
    package var hexadecimal: String {
        String(unsafeUninitializedCapacity: 2 * count) { buffer in
            for (index, byte) in enumerated() {
                buffer[2 * index] = (byte >> 4).hexadecimalDigit
                buffer[2 * index + 1] = byte.hexadecimalDigit
            }
            return 2 * count
        }
    }

    /// The bytes of hexadecimal digits in upper or lower case; `nil` if the text has another character, or an odd number
    /// of digits.
    package init?(hexadecimal text: some StringProtocol) {
        let digits = text.utf8.map(\.hexadecimalValue)
        guard digits.count.isMultiple(of: 2) else { return nil }
        self = []
        for index in stride(from: 0, to: digits.count, by: 2) {
            guard let high = digits[index], let low = digits[index + 1] else { return nil }
            append(high << 4 | low)
        }
    }
}

extension UInt8 {
    /// The hexadecimal digit of the last four bits.
    fileprivate var hexadecimalDigit: UInt8 {
        let value = self & 0xF
        return value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") - 10 + value
    }

    /// The value of a hexadecimal digit.
    fileprivate var hexadecimalValue: UInt8? {
        switch self {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): self - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): self - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): self - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
