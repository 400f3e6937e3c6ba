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

/// The traffic of a scenario.
package struct Traffic: Sendable, Encodable {
    /// The size of the representation in bytes.
    package let size: Int64
    /// The number of bytes of content that were transferred.
    package let transferred: Int64
    package let requests: Int
    /// The number of runs of the command.
    package let runs: Int
    /// The time from the first interruption to the next byte of content; `nil` if there was no interruption.
    package let recoveryMilliseconds: Int64?

    /// A description for reports.
    package var text: String {
        var parts = ["\(requests) request\(requests == 1 ? "" : "s")"]
        if size > 0 {
            let hundredths = transferred * 100 / size
            parts.append("\(hundredths / 100).\(String(hundredths % 100 + 100).dropFirst()) × the size")
        }
        if let recoveryMilliseconds { parts.append("resumed after \(recoveryMilliseconds) ms") }
        if runs > 1 { parts.append("\(runs) runs") }
        return parts.joined(separator: ", ")
    }
}
