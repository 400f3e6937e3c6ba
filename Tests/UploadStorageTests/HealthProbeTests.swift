import TestSupport
import Testing

@testable import UploadStorage

/// Verifies for generated sequences of calls which call runs a check, which call gets the last result, and which call
/// waits.
@Suite struct HealthProbeTests {
    @Test("one check runs at a time; other calls get the last result immediately; a stuck check is reported separately")
    func generatedSequences() {
        for seed in UInt64(1)...300 {
            var generator = SeededGenerator(seed: seed)
            var probe = HealthProbe()
            var now: Int64 = 0
            var begun: Int64?
            var last: (health: Health, at: Int64)?
            for step in 0..<200 {
                now += Int64.random(in: 0...900_000_000, using: &generator)
                if begun != nil, Int.random(in: 0..<6, using: &generator) == 0 {
                    let health = Health(isReady: false, reasons: ["\(step)"])
                    probe.end(health, at: now)
                    (begun, last) = (nil, (health, now))
                }
                let isLastAccepted = Int.random(in: 0..<4, using: &generator) > 0
                switch probe.decision(at: now, isLastAccepted: isLastAccepted) {
                case .check:
                    #expect(begun == nil, "seed \(seed)")
                    #expect(last.map { now - $0.at >= HealthProbe.validity } ?? true, "seed \(seed)")
                    probe.begin(at: now)
                    begun = now
                case .wait:
                    #expect(begun != nil && (!isLastAccepted || last == nil), "seed \(seed)")
                case .answer(HealthProbe.stuck):
                    #expect(begun.map { now - $0 >= HealthProbe.timeout } ?? false, "seed \(seed)")
                case .answer(let health):
                    #expect(health == last?.health, "seed \(seed)")
                    if let begun { #expect(isLastAccepted && now - begun < HealthProbe.timeout, "seed \(seed)") }
                }
            }
        }
    }
}
