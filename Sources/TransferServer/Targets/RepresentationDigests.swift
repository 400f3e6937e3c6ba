import HTTPSemantics

/// The digest fields of a creation about its complete representation (RFC 9530, draft section 10.1).
struct RepresentationDigests: Sendable {
    /// The fields that are read.
    static let requestFields = ["Repr-Digest", "Want-Repr-Digest"]

    /// The expected digests from `Repr-Digest`; unknown algorithms are skipped.
    let expected: DigestField?
    /// The algorithm that the client requests with `Want-Repr-Digest`.
    let wanted: DigestAlgorithm?

    init(fields: Fields) {
        expected = DigestField(fieldLines: fields.values("Repr-Digest"))
        wanted = DigestPreferences(fieldLines: fields.values("Want-Repr-Digest"))?.preferred
    }

    /// The algorithms that must be updated while content arrives.
    var algorithms: Set<DigestAlgorithm> {
        var algorithms: Set<DigestAlgorithm> = []
        for (algorithm, _) in expected?.values ?? [] { algorithms.insert(algorithm) }
        if let wanted { algorithms.insert(wanted) }
        return algorithms
    }
}
