/// A hash algorithm, named as in the registry of RFC 9530 §5.
package enum Algorithm: String, Sendable, CaseIterable {
    case sha256 = "sha-256"
    case sha512 = "sha-512"
}
