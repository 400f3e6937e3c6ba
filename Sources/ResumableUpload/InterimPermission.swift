/// Whether interim responses (104) may be sent in answer to a request (draft section 4.2.2).
package enum InterimPermission: Sendable, Hashable {
    case allowed
    case withheld(InterimObstacle)
}

/// Why no 104 may be sent before the final response to a request. If there are several reasons, the first one is used.
package enum InterimObstacle: String, Sendable, Hashable, CaseIterable {
    /// HTTP/1.0 does not support interim responses (RFC 9110 section 15.2).
    case oldHTTP = "old-http"
    /// The operator of the server has turned interim responses off.
    case turnedOff = "turned-off"
    /// The request declines interim responses.
    case declined
    /// The request names no version, and the protocol is not published (draft appendix B).
    case noVersion = "no-version"
    /// The request names a version that is not supported, or its version field is malformed. The client would not
    /// understand a 104 of another version.
    case unusableVersion = "unusable-version"
}
