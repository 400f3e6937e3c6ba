/// What was found out about one thing that a proxy does.
package struct ProxyFinding: Sendable {
    /// How good it is for uploads.
    package enum Grade: String, Sendable {
        case good
        /// Uploads get worse, or need a setting.
        case poor
        /// Uploads break, unless a setting helps.
        case bad
        /// Neither: for information, or nothing could be found out.
        case neutral
    }

    /// Stable, such as `interim`.
    package let id: String
    /// What is asked, for a person.
    package let title: String
    package let grade: Grade
    /// What was seen, for a person.
    package let answer: String
    let transcript: [Transcript.Entry]
    let omittedEvents: Int
}
