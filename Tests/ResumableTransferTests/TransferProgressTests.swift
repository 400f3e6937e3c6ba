import Foundation
import TestSupport
import Testing

@testable import ResumableTransfer

@Suite("The progress of a transfer")
struct TransferProgressTests {
    private static let numbers: [Int64] = [.min, -2, -1, 0, 1, 2, 40, 99, 100, 1 << 30, 1 << 62, .max - 1, .max]

    @Test("the counts stay consistent, whatever values they are updated with", arguments: [UInt64](1...20))
    func counts(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var counts = ByteCounts(total: nil)
        for _ in 0..<500 {
            let completed = Self.numbers.randomElement(using: &generator) ?? 0
            counts.update(completed: completed, total: (Self.numbers + [nil]).randomElement(using: &generator) ?? nil)
            #expect(counts.completed >= 0 && counts.completed <= counts.total ?? .max, "seed \(seed)")
            #expect((0..<ByteCounts.units).contains(counts.completedUnits), "seed \(seed)")
        }
        counts.finish()
        #expect(counts.completedUnits == ByteCounts.units && counts.completed == counts.total)
    }

    @Test(
        "a total that becomes 0, unknown or smaller stops neither the progress nor its parent",
        arguments: [UInt64](1...20))
    func progress(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let parent = Progress(totalUnitCount: 3)
        let children = (0..<3).map { _ in TransferProgress(total: Self.numbers.randomElement(using: &generator)) }
        for child in children { parent.addChild(child, withPendingUnitCount: 1) }
        for _ in 0..<500 {
            guard let child = children.randomElement(using: &generator) else { continue }
            let number = Self.numbers.randomElement(using: &generator) ?? 0
            switch Int.random(in: 0..<4, using: &generator) {
            case 0: child.totalUnitCount = number
            case 1: child.completedUnitCount = number
            default: child.update(completed: number, total: Self.numbers.randomElement(using: &generator))
            }
            #expect((0...1).contains(child.fractionCompleted) && !child.isFinished, "seed \(seed)")
            #expect((0...1).contains(parent.fractionCompleted) && !parent.isFinished, "seed \(seed)")
        }
        for child in children { child.finish() }
        #expect(children.allSatisfy { $0.isFinished && $0.fractionCompleted == 1 })
        #expect(parent.isFinished && parent.fractionCompleted == 1)
    }

    @Test("the progress of an empty file is determinate and finished at the end")
    func empty() {
        let progress = TransferProgress(total: nil)
        #expect(progress.isIndeterminate && progress.totalUnitCount == -1)
        progress.update(completed: 40, total: 100)
        progress.update(completed: 0, total: 0)
        #expect(!progress.isIndeterminate && progress.totalUnitCount == 0 && progress.fractionCompleted == 0)
        progress.finish()
        #expect(progress.fractionCompleted == 1 && progress.completedUnitCount == 0 && progress.isFinished)
    }
}
