/// What a run of the client mode found out.
package struct ClientReport: Sendable {
    package let uploadCommand: String?
    package let downloadCommand: String?
    package let seed: UInt64
    /// Seconds since 1970.
    package let beganAt: Int64
    package let milliseconds: Int64
    package let results: [CaseResult]
    /// What each scenario cost, by its ID.
    package let traffic: [String: Traffic]
    /// Why the run could not judge.
    package let failure: String?

    /// How many questions ended with the outcome of this word.
    package func count(_ word: String) -> Int { results.count { $0.outcome.word == word } }

    /// 0 where no MUST failed (with `strict` no SHOULD either), 1 where one did, 2 where something could not be judged.
    package func exitStatus(strict: Bool) -> Int32 {
        if count("fail") > 0 || (strict && count("warn") > 0) { return 1 }
        return failure != nil || count("setup") + count("harness") > 0 ? 2 : 0
    }
}
