/// The parts of nettle's context of one algorithm that a running digest needs.
protocol HashContext: Sendable {
    associatedtype Word: FixedWidthInteger & UnsignedInteger & Sendable

    /// Bytes in a block; at least one byte of it is always free between two calls.
    static var blockSize: Int { get }

    /// The context of no bytes.
    static func initial() -> Self

    /// The eight words of the chaining value, in the machine's byte order.
    var words: [Word] { get set }

    /// The number of complete blocks in the digest.
    var blockCount: UInt64 { get set }

    /// The last bytes, which do not fill a block yet; fewer than ``blockSize``.
    var partialBlock: [UInt8] { get set }

    mutating func absorb(_ bytes: UnsafeRawBufferPointer)

    /// Returns the digest and resets the context.
    mutating func finish() -> [UInt8]
}

extension HashContext {
    var byteCount: UInt64 { blockCount &* UInt64(Self.blockSize) &+ UInt64(partialBlock.count) }
}
