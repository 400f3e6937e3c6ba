/// The active hash algorithms of RFC 9530 §5. The insecure algorithms of its registry are not supported.
package enum DigestAlgorithm: String, Sendable, Hashable, CaseIterable {
    case sha256 = "sha-256"
    case sha512 = "sha-512"

    /// The number of bytes of a digest.
    package var size: Int {
        switch self {
        case .sha256: 32
        case .sha512: 64
        }
    }
}
