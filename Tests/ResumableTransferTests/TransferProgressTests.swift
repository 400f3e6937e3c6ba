import Foundation
import TestSupport
import Testing

@testable import ResumableTransfer

@Suite("The progress of a transfer")
struct TransferProgressTests {
    private static let numbers: [Int64] = [.min, -2, -1, 0, 1, 2, 40, 99, 100, 1 << 30, 1 << 62, .max - 1, .max]

    @Test("the counts stay consistent after updates with any values", arguments: [UInt64](1...20))
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
        "a total that becomes 0, unknown or smaller finishes neither the progress nor its parent",
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

    @Test("children of one parent can be updated on different threads", arguments: 1...5)
    func threads(round: Int) async {
        let parent = Progress(totalUnitCount: 4)
        let children = (0..<4).map { _ in TransferProgress(total: 100_000) }
        for child in children { parent.addChild(child, withPendingUnitCount: 1) }
        await withTaskGroup { group in
            for child in children {
                group.addTask {
                    for count in 1...5000 {
                        child.update(completed: Int64(count) * 10, total: 100_000)
                        if !(0...0.5).contains(child.fractionCompleted) { Issue.record("\(child.fractionCompleted)") }
                    }
                }
            }
        }
        #expect(children.allSatisfy { $0.fractionCompleted == 0.5 } && parent.fractionCompleted == 0.5)
        for child in children { child.finish() }
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

    @Test("the progress of a resumed transfer begins with the position in its resume data")
    func resumed() throws {
        let client = TransferClient(transport: MockTransport(responses: []))
        let upload = try client.resumeUpload(ResumeData(.uploadSample()), from: DataSource(Data(count: 100)))
        #expect(upload.progress.completedUnitCount == 40 && upload.progress.totalUnitCount == 100)
        let download = try client.resumeDownload(ResumeData(.downloadSample()))
        #expect(download.progress.completedUnitCount == 10 && download.progress.totalUnitCount == 20)
        #expect(download.progress.fractionCompleted == 0.5)
    }

    private static let second: Int64 = 1_000_000_000

    @Test("the throughput counts only bytes that this run has transferred, and determines the remaining time")
    func throughput() throws {
        let progress = TransferProgress(total: 10_000)
        let second = Self.second
        #expect(progress.throughput(at: 0) == nil && progress.estimatedTimeRemaining(at: 0) == nil)
        // An earlier run has transferred 5000 bytes.
        progress.update(completed: 5000, total: 10_000)
        progress.note(transferred: 0, at: 0)
        for step in 1...4 {
            progress.update(completed: 5000 + Int64(step) * 100, total: 10_000)
            progress.note(transferred: Int64(step) * 100, at: Int64(step) * second)
        }
        #expect(progress.throughput(at: 4 * second) == 100)
        #expect(progress.estimatedTimeRemaining(at: 4 * second) == .seconds(46))
        progress.update(completed: 5400, total: nil)
        #expect(progress.throughput(at: 4 * second) == 100)
        #expect(progress.estimatedTimeRemaining(at: 4 * second) == nil)
        progress.update(completed: 10_000, total: 10_000)
        progress.finish()
        #expect(progress.estimatedTimeRemaining(at: 4 * second) == .zero)
    }

    @Test("while a transfer waits, its throughput is 0; after the wait a new measurement of the throughput begins")
    func waiting() {
        let progress = TransferProgress(total: 10_000)
        let second = Self.second
        progress.note(transferred: 0, at: 0)
        progress.note(transferred: 1000, at: second)
        #expect(progress.throughput(at: second) == 1000)
        progress.setWaiting(true)
        #expect(progress.isWaiting && progress.throughput(at: 2 * second) == 0)
        #expect(progress.estimatedTimeRemaining(at: 2 * second) == nil)
        progress.setWaiting(false)
        #expect(progress.throughput(at: 60 * second) == nil)
        progress.note(transferred: 1000, at: 60 * second)
        progress.note(transferred: 3000, at: 61 * second)
        #expect(progress.throughput(at: 61 * second) == 2000)
    }

    @Test("the rate covers the last seconds, and decreases to 0 if nothing is transferred")
    func rate() {
        var meter = RateMeter()
        let tenth = Self.second / 10
        #expect(meter.rate(at: 0) == nil)
        for step in 0...100 { meter.note(Int64(step) * 100_000, at: Int64(step) * tenth) }
        #expect(abs((meter.rate(at: 100 * tenth) ?? 0) - 1_000_000) < 20_000)
        for step in 101...300 { meter.note(10_000_000 + Int64(step - 100) * 10_000, at: Int64(step) * tenth) }
        #expect(abs((meter.rate(at: 300 * tenth) ?? 0) - 100_000) < 2_000)
        #expect((meter.rate(at: 350 * tenth) ?? 0) < 40_000)
        #expect(meter.rate(at: 400 * tenth) == 0)
    }

    @Test(
        "the rate is never negative and never more than 1.5 times the rate of the fastest interval",
        arguments: [UInt64](1...20))
    func bounds(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var meter = RateMeter()
        var time: Int64 = 0
        var count: Int64 = 0
        for _ in 0..<500 {
            let pause = Int64.random(in: 1...3_000_000_000, using: &generator)
            time += pause
            // At most one byte is transferred in each microsecond.
            count += Int64.random(in: 0...(pause / 1000), using: &generator)
            meter.note(count, at: time)
            let rate = meter.rate(at: time + Int64.random(in: 0...10_000_000_000, using: &generator))
            #expect((0...1_000_000 * 1.5).contains(rate ?? 0), "seed \(seed)")
        }
    }
}
