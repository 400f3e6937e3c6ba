import HTTPSemantics
import ResumableUpload
import Testing

/// Random requests in random versions against one upload, checked by rules that know none of the decisions.
@Suite struct ModelTests {
    @Test(
        "OFF-09 OFF-11 CRE-15 CRE-16 APP-08 APP-13 APP-14 APP-19 APP-28 CMP-01 CMP-02 LEN-02 LEN-05 LEN-06 LIM-03 VER-22: any sequence",
        arguments: 0..<1500 as Range<UInt64>)
    func anySequence(seed: UInt64) {
        var run = ModelRun(seed: seed)
        run.create()
        for _ in 0..<40 { run.step() }
    }

    @Test(
        "APP-01 APP-09 OFF-11 VER-22: an honest client gets through all the same", arguments: 0..<500 as Range<UInt64>)
    func honest(seed: UInt64) {
        var run = ModelRun(seed: seed)
        run.isHonest = true
        run.create()
        for _ in 0..<200 where !run.isDone { run.step() }
        #expect(run.isDone, "seed \(seed)")
        #expect(run.server.stored == run.source, "seed \(seed)")
        #expect(run.server.timesProcessed == 1, "seed \(seed)")
    }
}
