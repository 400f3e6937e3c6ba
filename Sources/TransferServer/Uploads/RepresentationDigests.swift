import HTTPSemantics

/// What a creation asks of the digest of its whole representation (RFC 9530, draft section 10.1).
struct RepresentationDigests: Sendable {
    /// The fields that are read.
    static let requestFields = ["Repr-Digest", "Want-Repr-Digest"]

    /// What the representation has to have, from `Repr-Digest`; unknown algorithms are skipped.
    let expected: DigestField?
    /// What the client wants to be told, from `Want-Repr-Digest`.
    let wanted: DigestAlgorithm?

    init(fields: Fields) {
        expected = DigestField(fieldLines: fields.values("Repr-Digest"))
        wanted = DigestPreferences(fieldLines: fields.values("Want-Repr-Digest"))?.preferred
    }

    /// The algorithms that have to run while the bytes arrive.
    var algorithms: Set<DigestAlgorithm> {
        Set((expected?.values.map(\.algorithm) ?? []) + (wanted.map { [$0] } ?? []))
    }
}
