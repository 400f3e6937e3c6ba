extension HashContext {
    static var wordCount: Int { 8 }

    /// The maximum length of a SHA-256 message (FIPS 180-4 §1). It is used for SHA-512 as well.
    static var maximumByteCount: UInt64 { (1 << 61) - 1 }

    /// The state words, the count of bytes (8 bytes) and the partial block. Integers are big-endian.
    var encoded: [UInt8] {
        words.flatMap(\.bigEndianBytes) + byteCount.bigEndianBytes + partialBlock
    }

    /// Decodes the value of ``encoded``; returns nil for anything that ``encoded`` cannot be.
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
