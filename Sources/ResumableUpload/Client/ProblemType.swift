/// What of a response's problem document (RFC 9457) tells an upload how to go on.
package struct ProblemType: Sendable, Hashable {
    /// The URI of the problem type.
    package var type: String
    /// `expected-offset` of a mismatching offset (draft section 7.1), in bytes.
    package var expectedOffset: Int64?

    package init(type: String, expectedOffset: Int64?) {
        self.type = type
        self.expectedOffset = expectedOffset
    }

    /// Whether it says that bytes arrived other than they were digested.
    var isDigestMismatch: Bool { type.hasSuffix("digest-mismatch") }
}
