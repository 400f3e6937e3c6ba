/// The results of a run of the server mode.
package struct RunReport: CaseReport {
    package let url: String
    package let method: String
    package let base: Profile
    package let supportedProfiles: [Profile]
    /// Whether the subject announces a creation with 104; `nil` if that is unknown, because it could not be reached.
    package let isAnnouncing: Bool?
    package let limits: [String: Int64]
    package let download: String?
    /// Seconds since 1970.
    package let beganAt: Int64
    package let milliseconds: Int64
    package let results: [CaseResult]
    /// The reason why no cases ran, or not all of them; `nil` if all cases ran.
    package let failure: String?

    package var subjects: [String] { ["\(method) \(url)"] }
    package var role: String { "server" }
    package var remark: String {
        if supportedProfiles.isEmpty { return "supported versions unknown" }
        let versions = supportedProfiles.map(\.word).sorted().joined(separator: " ")
        return "\(base), supports \(versions)\(isAnnouncing == false ? ", sends no 104" : "")"
    }
}

/// The reason why a run could not start.
package struct RunFailure: Error, CustomStringConvertible {
    package let description: String

    init(_ description: String) { self.description = description }
}
