/// The result of one check of a proxy.
package struct ProxyFinding: Sendable {
    /// The effect of the behavior on uploads.
    package enum Grade: String, Sendable {
        case good
        /// Uploads work less well, or need a setting.
        case poor
        /// Uploads do not work without a setting.
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
