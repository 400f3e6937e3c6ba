/// What a run found out.
package struct RunReport: Sendable {
    package let url: String
    package let method: String
    package let base: Profile
    package let spoken: [Profile]
    package let announces: Bool
    package let limits: [String: Int64]
    package let download: String?
    /// Seconds since 1970.
    package let beganAt: Int64
    package let milliseconds: Int64
    package let results: [CaseResult]
    /// Why the run could not judge, or not to its end.
    package let failure: String?

    /// How many cases ended with the outcome of this word.
    package func count(_ word: String) -> Int { results.count { $0.outcome.word == word } }

    /// 0 where no MUST failed (with `strict` no SHOULD either), 1 where one did, 2 where something could not be judged.
    package func exitStatus(strict: Bool) -> Int32 {
        if count("fail") > 0 || (strict && count("warn") > 0) { return 1 }
        return failure != nil || count("setup") + count("harness") > 0 ? 2 : 0
    }
}
