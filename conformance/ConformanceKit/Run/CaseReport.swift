/// What a run found out, for a report.
package protocol CaseReport: Sendable {
    /// What was verified, for a heading: a server, or commands.
    var subjects: [String] { get }
    /// `server` or `client`.
    var role: String { get }
    /// What a reader has to know about the run.
    var remark: String { get }
    /// Seconds since 1970.
    var beganAt: Int64 { get }
    var milliseconds: Int64 { get }
    var results: [CaseResult] { get }
    /// Why the run could not verify, or not to its end.
    var failure: String? { get }
}

extension CaseReport {
    /// How many cases ended with the outcome of this word.
    package func count(_ word: String) -> Int { results.count { $0.outcome.word == word } }

    /// 0 where no MUST failed (with `strict` no SHOULD either), 1 where one did, 2 where something could not be verified.
    package func exitStatus(strict: Bool) -> Int32 {
        if count("fail") > 0 || (strict && count("warn") > 0) { return 1 }
        return failure != nil || count("setup") + count("harness") > 0 ? 2 : 0
    }

    /// `1 fail, 2 warn`, without what there is none of.
    var counts: String {
        Outcome.words.compactMap { word in
            let count = count(word)
            return count == 0 ? nil : "\(count) \(word)"
        }.joined(separator: ", ")
    }

    var seconds: String { "\(milliseconds / 1000).\(milliseconds % 1000 / 100) s" }

    /// Sections in the order of the run.
    var groups: [String] {
        var groups: [String] = []
        for result in results where !groups.contains(result.subject.group) { groups.append(result.subject.group) }
        return groups
    }
}
