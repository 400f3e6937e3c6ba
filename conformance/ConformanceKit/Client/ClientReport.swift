/// The results of a run of the client mode.
package struct ClientReport: CaseReport {
    package let uploadCommand: String?
    package let downloadCommand: String?
    package let seed: UInt64
    /// Seconds since 1970.
    package let beganAt: Int64
    package let milliseconds: Int64
    package let results: [CaseResult]
    /// The traffic of each scenario, by its ID.
    package let traffic: [String: Traffic]
    /// The reason why no cases ran, or not all of them; `nil` if all cases ran.
    package let failure: String?

    package var subjects: [String] { [uploadCommand, downloadCommand].compactMap { $0 } }
    package var role: String { "client" }
    package var remark: String { "seed \(seed)" }
}
