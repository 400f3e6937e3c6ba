import Foundation
import Testing

@testable import UploadStorage

/// Seeded histories over the in-memory implementation that are cut off at any step, recovered (and cut off there again), and checked.
@Suite struct CrashTests {
    /// Seeds of ten histories each. `ONWARD_CRASH_HISTORIES` asks for more than the share of every run, `ONWARD_SEED` for one
    /// history alone.
    private static let blocks: [ClosedRange<UInt64>] = {
        let environment = ProcessInfo.processInfo.environment
        if let seed = environment["ONWARD_SEED"].flatMap({ UInt64($0) }) { return [seed...seed] }
        let count = environment["ONWARD_CRASH_HISTORIES"].flatMap { UInt64($0) } ?? 400
        return stride(from: 0, to: count, by: 10).map { $0...($0 + 9) }
    }()

    @Test(
        "OFF-10 OFF-18: no crash takes an acknowledged offset back, halves a file or repeats a publication",
        arguments: blocks)
    func crashes(_ seeds: ClosedRange<UInt64>) throws {
        for seed in seeds {
            var history = CrashHistory(seed: seed, withFaults: seed % 2 == 1)
            try history.run()
            #expect(history.complaints == [], "ONWARD_SEED=\(seed): \(history.steps)")
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
