import HTTPSemantics
import ResumableUpload
import TestSupport
import Testing

/// Sends random requests in random versions to one upload. The rules that check them do not use the tested decisions.
@Suite struct ModelTests {
    @Test(
        "OFF-09 OFF-11 CRE-15 CRE-16 APP-08 APP-13 APP-14 APP-19 APP-28 CMP-01 CMP-02 LEN-02 LEN-05 LEN-06 LIM-03 VER-22: random requests violate no rule",
        arguments: 0..<UInt64(SeededGenerator.count(1500)))
    func anySequence(seed: UInt64) {
        var run = ModelRun(seed: seed)
        run.create()
        for _ in 0..<40 { run.step() }
    }

    @Test(
        "APP-01 APP-09 OFF-11 VER-22: a correct client completes its upload despite broken connections",
        arguments: 0..<UInt64(SeededGenerator.count(500)))
    func correctClient(seed: UInt64) {
        var run = ModelRun(seed: seed)
        run.isCorrect = true
        run.create()
        for _ in 0..<200 where !run.isDone { run.step() }
        #expect(run.isDone, "seed \(seed)")
        #expect(run.server.stored == run.source, "seed \(seed)")
        #expect(run.server.timesProcessed == 1, "seed \(seed)")
    }
}
