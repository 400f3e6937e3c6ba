import FoundationEssentials

/// Random bytes from which many uploads take their content; no two blocks of 4 KiB are equal.
enum BytePool {
    static let bytes: [UInt8] = {
        let block = Payload.bytes(1 << 20, seed: 77)
        var pool: [UInt8] = []
        pool.reserveCapacity(24 << 20)
        for _ in 0..<24 { pool += block }
        for start in stride(from: 0, to: pool.count, by: 4096) {
            var word = UInt64(start).littleEndian &* 0x9E37_79B9_7F4A_7C15
            for place in 0..<8 {
                pool[start + place] ^= UInt8(truncatingIfNeeded: word)
                word >>= 8
            }
        }
        return pool
    }()

    /// The bytes of a part of a representation that repeats the pool; `range` is a range of the representation.
    static func repeated(_ range: Range<Int>) -> [UInt8] {
        var result: [UInt8] = []
        var position = range.lowerBound
        while position < range.upperBound {
            let start = position % bytes.count
            let end = min(bytes.count, start + range.upperBound - position)
            result += bytes[start..<end]
            position += end - start
        }
        return result
    }
}

extension ServerProcess {
    /// The number of requests that ended without a response, according to the access log.
    static func interruptions(in log: String) -> Int {
        log.split(separator: "\n").count { $0.hasSuffix(" interrupted") }
    }

    /// Waits until the access log has `count` interrupted requests. The server writes such a line after it has stored
    /// the received content of the request.
    func awaitInterruptions(_ count: Int) throws {
        _ = try process.awaitErrorOutput { Self.interruptions(in: $0) >= count ? true : nil }
    }
}
