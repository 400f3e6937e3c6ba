/// Whether interim responses (104) may be sent in answer to a request (draft section 4.2.2).
package enum InterimPermission: Sendable, Hashable {
    case allowed
    case withheld(InterimObstacle)
}

/// Why a request must not be answered with 104 before its final response. Where several hold, the first counts.
package enum InterimObstacle: String, Sendable, Hashable, CaseIterable {
    /// HTTP/1.0 knows no interim responses (RFC 9110 section 15.2).
    case oldHTTP = "old-http"
    /// Whoever runs the server has turned them off.
    case turnedOff = "turned-off"
    /// The request asks for none.
    case declined
    /// The request names no version, and the protocol is not published (draft appendix B).
    case noVersion = "no-version"
    /// The request names a version that is not spoken here, or its field is void: its sender would not understand 104.
    case unusableVersion = "unusable-version"
}
