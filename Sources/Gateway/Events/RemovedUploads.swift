/// The uploads whose events a ``DeliverySchedule`` has removed, in a limited amount of memory. It is a Bloom filter with
/// two positions: it can also contain a few uploads that were never inserted.
struct RemovedUploads: Sendable, Hashable {
    /// The number of bits, which need 256 KiB.
    private static let size: UInt = 1 << 21

    /// The words that contain the bits; empty before the first insertion.
    private var words: [UInt64] = []
    /// Makes the hashes of each set different, so that two sets do not have the same false positives.
    private let salt = UInt64.random(in: 0 ... .max)

    var isEmpty: Bool { words.isEmpty }

    mutating func insert(_ upload: String) {
        if words.isEmpty { words = [UInt64](repeating: 0, count: Int(Self.size / 64)) }
        for position in positions(of: upload) { words[position.word] |= position.bit }
    }

    func contains(_ upload: String) -> Bool {
        !words.isEmpty && positions(of: upload).allSatisfy { words[$0.word] & $0.bit != 0 }
    }

    private func positions(of upload: String) -> [(word: Int, bit: UInt64)] {
        var hasher = Hasher()
        hasher.combine(salt)
        hasher.combine(upload)
        let hash = UInt(bitPattern: hasher.finalize())
        return [hash % Self.size, (hash >> 32) % Self.size].map { (Int($0 / 64), 1 << UInt64($0 % 64)) }
    }
}
