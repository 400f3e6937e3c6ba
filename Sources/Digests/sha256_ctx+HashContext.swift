import CNettle

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
