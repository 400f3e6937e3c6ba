/// What a run of the client mode found out.
package struct ClientReport: CaseReport {
    package let uploadCommand: String?
    package let downloadCommand: String?
    package let seed: UInt64
    /// Seconds since 1970.
    package let beganAt: Int64
    package let milliseconds: Int64
    package let results: [CaseResult]
    /// What each scenario cost, by its ID.
    package let traffic: [String: Traffic]
    /// Why the run could not verify.
    package let failure: String?

    package var subjects: [String] { [uploadCommand, downloadCommand].compactMap { $0 } }
    package var role: String { "client" }
    package var remark: String { "seed \(seed)" }
}
