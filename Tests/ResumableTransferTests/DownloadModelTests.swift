import HTTPSemantics
import ResumableUpload
import Testing

@testable import ResumableTransfer

@Suite("The state machine of a download against a model")
struct DownloadModelTests {
    @Test(
        "RNG-27 RNG-28 RNG-29 RNG-30 RNG-32: cuts, changes and wrong responses never cause a wrong byte in the file",
        arguments: [UInt64](1...40))
    func run(seed: UInt64) {
        var finished = 0
        for number in 0..<50 {
            var run = DownloadModel(seed: seed &* 1000 &+ UInt64(number))
            if run.run() { finished += 1 }
            for problem in run.problems { Issue.record("seed \(seed), run \(number): \(problem)") }
        }
        #expect(finished > 25, "seed \(seed)")
    }
}
