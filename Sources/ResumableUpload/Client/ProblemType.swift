/// The parts of a problem document (RFC 9457) that decide how an upload continues.
package struct ProblemType: Sendable, Hashable {
    /// The URI of the problem type.
    package var type: String
    /// `expected-offset` of a mismatching offset (draft section 7.1), in bytes.
    package var expectedOffset: Int64?

    package init(type: String, expectedOffset: Int64?) {
        self.type = type
        self.expectedOffset = expectedOffset
    }

    /// Whether it reports that the received bytes do not match their digest.
    var isDigestMismatch: Bool { type.hasSuffix("digest-mismatch") }
}
