import Foundation
import Testing

@testable import UploadStorage

/// Seeded histories over the in-memory implementation. Each history crashes at one step, is recovered with further
/// crashes, and is checked.
@Suite struct CrashTests {
    /// Ranges of ten seeds each. `ONWARD_CRASH_HISTORIES` sets the number of histories (default: 400), `ONWARD_SEED`
    /// selects a single history.
    private static let blocks: [ClosedRange<UInt64>] = {
        let environment = ProcessInfo.processInfo.environment
        if let seed = environment["ONWARD_SEED"].flatMap({ UInt64($0) }) { return [seed...seed] }
        let count = environment["ONWARD_CRASH_HISTORIES"].flatMap { UInt64($0) } ?? 400
        return stride(from: 0, to: count, by: 10).map { $0...($0 + 9) }
    }()

    @Test(
        "OFF-10 OFF-18: no crash decreases an acknowledged offset, truncates a file or repeats a publication",
        arguments: blocks)
    func crashes(_ seeds: ClosedRange<UInt64>) throws {
        for seed in seeds {
            var history = CrashHistory(seed: seed, withFaults: seed % 2 == 1)
            try history.run()
            #expect(history.problems == [], "ONWARD_SEED=\(seed): \(history.steps)")
        }
    }

    @Test(
        "a crash at any step of a publication loses no acknowledged state", arguments: [0 as UInt64, 1],
        [
            [.create, .append, .acknowledge, .append, .publish], [.create, .append, .publish],
            [.create, .publish, .create, .takeOver, .publish], [.create, .append, .release, .takeOver, .publish],
            [.create, .append, .complete], [.create, .append, .cancel],
        ] as [[CrashHistory.Action]])
    func everyStep(_ seed: UInt64, _ script: [CrashHistory.Action]) throws {
        for step in 1...60 {
            for lateLength in [-1, 4000] {
                var history = CrashHistory(seed: seed, crashStep: step, script: script, lateLength: lateLength)
                try history.run()
                #expect(history.problems == [], "step \(step), seed \(seed), \(lateLength), \(history.steps)")
            }
        }
    }
}
