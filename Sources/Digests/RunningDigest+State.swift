import CNettle

extension RunningDigest {
    private static let version: UInt8 = 1

    /// The state in a form that depends on neither machine nor library, at most 201 bytes.
    ///
    /// In order: version (1 byte, 1), algorithm (1 byte: 1 for SHA-256, 2 for SHA-512), the eight state words of FIPS
    /// 180-4 §6 (4 or 8 bytes each), the count of bytes in the digest (8 bytes), and the last bytes, which do not fill
    /// a block yet (the count modulo 64 or 128). Integers are big-endian.
    package func encodedState() -> [UInt8] {
        switch context {
        case .sha256(let state): [Self.version, Self.code(of: .sha256)] + state.encoded
        case .sha512(let state): [Self.version, Self.code(of: .sha512)] + state.encoded
        }
    }

    /// Continues from a state that ``encodedState()`` returned.
    ///
    /// Nil for anything else: an unknown version or algorithm, a length that contradicts the count, a count above 2^61
    /// - 1 bytes, or changed state words without a complete block.
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
