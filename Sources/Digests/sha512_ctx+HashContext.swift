import CNettle

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
