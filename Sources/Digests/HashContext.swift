import CNettle

/// The operations and the state of nettle's hash contexts that ``RunningDigest`` uses.
protocol HashContext: Sendable {
    associatedtype Word: FixedWidthInteger & UnsignedInteger & Sendable

    /// The number of bytes in a block.
    static var blockSize: Int { get }

    /// The context before the first byte.
    static func initial() -> Self

    /// The eight words of the chaining value, in the machine's byte order.
    var words: [Word] { get set }

    /// The number of complete blocks that have been hashed.
    var blockCount: UInt64 { get set }

    /// The last bytes, which do not fill a block yet: always fewer than ``blockSize``.
    var partialBlock: [UInt8] { get set }

    mutating func absorb(_ bytes: UnsafeRawBufferPointer)

    /// Returns the digest and resets the context.
    mutating func finish() -> [UInt8]
}

extension HashContext {
    var byteCount: UInt64 { blockCount &* UInt64(Self.blockSize) &+ UInt64(partialBlock.count) }
}

extension HashContext {
    static var wordCount: Int { 8 }

    /// The maximum length of a SHA-256 message in bytes (FIPS 180-4 §1). It is used for SHA-512 as well.
    static var maximumByteCount: UInt64 { (1 << 61) - 1 }

    /// The state words, the count of bytes (8 bytes) and the partial block. Integers are big-endian.
    var encoded: [UInt8] {
        words.flatMap(\.bigEndianBytes) + byteCount.bigEndianBytes + partialBlock
    }

    /// Decodes the value of ``encoded``; returns nil for bytes that ``encoded`` never returns.
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
        guard count <= Self.maximumByteCount, partialBlock.count == Int(remainder) else { return nil }
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
    static var blockSize: Int { Int(SHA256_BLOCK_SIZE) }

    static func initial() -> sha256_ctx {
        var context = sha256_ctx()
        nettle_sha256_init(&context)
        return context
    }

    var words: [UInt32] {
        get { withUnsafeBytes(of: state) { Array($0.bindMemory(to: UInt32.self)) } }
        set {
            withUnsafeMutableBytes(of: &state) { target in
                newValue.withUnsafeBytes {
                    target.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0.prefix(target.count)))
                }
            }
        }
    }

    var blockCount: UInt64 {
        get { count }
        set { count = newValue }
    }

    var partialBlock: [UInt8] {
        get { withUnsafeBytes(of: block) { Array($0.prefix(Int(index))) } }
        set {
            withUnsafeMutableBytes(of: &block) { $0.copyBytes(from: newValue.prefix($0.count)) }
            index = UInt32(newValue.count)
        }
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
    static var blockSize: Int { Int(SHA512_BLOCK_SIZE) }

    static func initial() -> sha512_ctx {
        var context = sha512_ctx()
        nettle_sha512_init(&context)
        return context
    }

    var words: [UInt64] {
        get { withUnsafeBytes(of: state) { Array($0.bindMemory(to: UInt64.self)) } }
        set {
            withUnsafeMutableBytes(of: &state) { target in
                newValue.withUnsafeBytes {
                    target.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0.prefix(target.count)))
                }
            }
        }
    }

    /// The upper half of nettle's count stays zero, because a message has fewer than 2^64 blocks.
    var blockCount: UInt64 {
        get { count_low }
        set { count_low = newValue }
    }

    var partialBlock: [UInt8] {
        get { withUnsafeBytes(of: block) { Array($0.prefix(Int(index))) } }
        set {
            withUnsafeMutableBytes(of: &block) { $0.copyBytes(from: newValue.prefix($0.count)) }
            index = UInt32(newValue.count)
        }
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
