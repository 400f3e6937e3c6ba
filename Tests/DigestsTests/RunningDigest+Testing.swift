import Digests

extension RunningDigest {
    mutating func update(_ bytes: some Sequence<UInt8>) {
        Array(bytes).withUnsafeBytes { update($0) }
    }

    /// The digest after encoding and decoding its state.
    func restored() -> RunningDigest? {
        RunningDigest(encodedState: encodedState())
    }
}

extension Algorithm {
    var blockSize: Int {
        switch self {
        case .sha256: 64
        case .sha512: 128
        }
    }

    var digestSize: Int {
        switch self {
        case .sha256: 32
        case .sha512: 64
        }
    }

    func digest(of bytes: some Sequence<UInt8>) -> [UInt8] {
        var digest = RunningDigest(self)
        digest.update(bytes)
        return digest.finalized()
    }
}

/// Bytes in which adjacent bytes and adjacent blocks differ.
func pattern(_ count: Int) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: $0 * 7 + 3) }
}

func hexadecimal(_ bytes: [UInt8]) -> String {
    let digits = Array("0123456789abcdef")
    return String(bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 0xF)]] })
}
