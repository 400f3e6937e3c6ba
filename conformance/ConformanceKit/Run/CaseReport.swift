/// The results of a run, for a report.
package protocol CaseReport: Sendable {
    /// The tested server or client commands, for a heading.
    var subjects: [String] { get }
    /// `server` or `client`.
    var role: String { get }
    /// The properties of the run that help to read the results.
    var remark: String { get }
    /// Seconds since 1970.
    var beganAt: Int64 { get }
    var milliseconds: Int64 { get }
    var results: [CaseResult] { get }
    /// The reason why no cases ran, or not all of them; `nil` if all cases ran.
    var failure: String? { get }
}

extension CaseReport {
    /// Returns the number of cases with the outcome of this name.
    package func count(_ word: String) -> Int { results.count { $0.outcome.word == word } }

    /// Returns 0 if no MUST failed, 1 if a MUST failed, 2 if cases could not run. With `strict` a SHOULD counts as a
    /// MUST.
    package func exitStatus(strict: Bool) -> Int32 {
        if count("fail") > 0 || (strict && count("warn") > 0) { return 1 }
        return failure != nil || count("setup") + count("harness") > 0 ? 2 : 0
    }

    /// The numbers of outcomes, such as `1 fail, 2 warn`; an outcome that does not occur is omitted.
    var counts: String {
        Outcome.words.compactMap { word in
            let count = count(word)
            return count == 0 ? nil : "\(count) \(word)"
        }.joined(separator: ", ")
    }

    var seconds: String { "\(milliseconds / 1000).\(milliseconds % 1000 / 100) s" }

    /// The groups of the cases, in the order of the run.
    var groups: [String] {
        var groups: [String] = []
        for result in results where !groups.contains(result.info.group) { groups.append(result.info.group) }
        return groups
    }
}
