import CNettle

/// A digest that is updated with bytes, and whose state another process can restore later.
///
/// ``finalized()`` and ``encodedState()`` do not change it, so both can be called at any point of a stream.
package struct RunningDigest: Sendable {
    enum Context: Sendable {
        case sha256(sha256_ctx)
        case sha512(sha512_ctx)
    }

    var context: Context

    /// The digest of no bytes.
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

    /// The number of bytes so far.
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
