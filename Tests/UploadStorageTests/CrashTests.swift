import Foundation
import Testing

@testable import UploadStorage

/// Seeded histories over the memory twin that are cut off at any step, recovered (and cut off there again), and judged.
@Suite struct CrashTests {
    /// Ten histories each; `ONWARD_CRASH_HISTORIES` asks for more than the share of every run.
    private static let blocks =
        (ProcessInfo.processInfo.environment["ONWARD_CRASH_HISTORIES"].flatMap(Int.init) ?? 400) / 10

    @Test(
        "OFF-10 OFF-18: no crash takes an acknowledged offset back, halves a file or repeats a publication",
        arguments: 0..<blocks)
    func crashes(_ block: Int) throws {
        for number in 0..<10 {
            let seed = UInt64(block * 10 + number)
            var history = CrashHistory(seed: seed, withFaults: number % 2 == 1)
            try history.run()
            #expect(history.complaints == [], "seed \(seed)")
        }
    }

    @Test("every single step of one publication may be the last", arguments: [0 as UInt64, 1])
    func everyStep(_ seed: UInt64) throws {
        for step in 1...60 {
            var history = CrashHistory(
                seed: seed, crashStep: step, script: [.create, .append, .acknowledge, .append, .publish])
            try history.run()
            #expect(history.complaints == [], "step \(step), seed \(seed)")
        }
    }
}
