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

    /// Creates the digest of no bytes.
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

/// A hash algorithm, named as in the registry of RFC 9530 §5.
package enum Algorithm: String, Sendable, CaseIterable {
    case sha256 = "sha-256"
    case sha512 = "sha-512"
}

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
    /// Returns nil for any other bytes: an unknown version or algorithm, a length that contradicts the count, a count
    /// above 2^61 - 1 bytes, or changed state words without a complete block.
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

extension [UInt8] {
    /// The bytes in hexadecimal: two lower-case digits for each byte.
    package var hexadecimal: String {
        func digit(_ value: UInt8) -> UInt8 { value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10 }
        return String(unsafeUninitializedCapacity: 2 * count) { buffer in
            for (index, byte) in enumerated() {
                buffer[2 * index] = digit(byte >> 4)
                buffer[2 * index + 1] = digit(byte & 15)
            }
            return 2 * count
        }
    }
}
