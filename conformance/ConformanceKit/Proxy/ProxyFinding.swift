/// The result of one check of a proxy.
package struct ProxyFinding: Sendable {
    /// The effect of the behavior on uploads.
    package enum Grade: String, Sendable {
        case good
        /// Uploads work, but less well, or only within a limit; a setting may help.
        case poor
        /// Uploads fail, or incomplete content looks complete; a setting may correct this.
        case bad
        /// The finding is information, or the check could not be made.
        case neutral
    }

    /// A stable ID, such as `interim`.
    package let id: String
    /// The title of the check.
    package let title: String
    package let grade: Grade
    /// A description of the behavior.
    package let answer: String
    let transcript: [Transcript.Entry]
    let omittedEvents: Int
}
