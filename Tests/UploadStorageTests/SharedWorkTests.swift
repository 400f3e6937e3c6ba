import Foundation
import SystemCalls
import TestSupport
import Testing

@testable import UploadStorage

/// Threads that need the same work at the same time share it.
@Suite(.timeLimit(.minutes(1))) struct SharedWorkTests {
    @Test("each thread gets the outcomes of its own requests, in batches of any size", arguments: [1, 2, 8])
    func outcomes(_ threadCount: Int) throws {
        let work = SharedWork<Int, Int>()
        let running = Monitor((current: 0, maximum: 0))
        let wrong = Monitor(0)
        let threads = try (0..<threadCount).map { thread in
            try WorkerThread(name: "client") {
                for round in 0..<500 {
                    let requests = Array((thread * 10_000 + round)..<(thread * 10_000 + round + round % 4))
                    let outcomes = work.run(
                        requests,
                        by: { batch in
                            running.withLock { running in
                                running.current += 1
                                running.maximum = max(running.maximum, running.current)
                            }
                            if round.isMultiple(of: 7) { sched_yield() }
                            running.withLock { $0.current -= 1 }
                            return batch
                        }, then: { batch in batch.map { 2 * $0 } })
                    if outcomes != requests.map({ 2 * $0 }) { wrong.withLock { $0 += 1 } }
                }
            }
        }
        for thread in threads { thread.join() }
        #expect(wrong.withLock { $0 } == 0)
        #expect(running.withLock { $0.maximum } == 1)
        #expect(work.counts.begun == threadCount * 750 && work.counts.waiting == 0)
    }

    @Test("requests that wait are served together, and a batch can begin before the last one has ended")
    func batches() throws {
        let work = SharedWork<Int, Int>()
        let batches = Monitor<[[Int]]>([])
        let gates = Monitor((mayBegin: false, mayEnd: false))
        let threads = Monitor<[WorkerThread]>([])
        @Sendable func run(_ number: Int) {
            _ = work.run(
                [number],
                by: { batch in
                    batches.withLock { $0.append(batch) }
                    batches.notifyAll()
                    if batch == [0] {
                        // After a batch that took little time, the same thread would serve the next one.
                        let slow = SystemClock.deadline(in: .milliseconds(2))
                        gates.waitForever { $0.mayBegin ? () : nil }
                        while SystemClock.monotonicNanoseconds() < slow { sched_yield() }
                    }
                    return batch
                },
                then: { batch in
                    if batch == [0] { gates.waitForever { $0.mayEnd ? () : nil } }
                    return batch
                })
        }
        for number in 0...3 {
            let thread = try WorkerThread(name: "client") { run(number) }
            threads.withLock { $0.append(thread) }
            if number == 0 {
                batches.waitForever { $0.isEmpty ? nil : () }
            } else {
                while work.counts.waiting < number { sched_yield() }
            }
        }
        gates.withLock { $0.mayBegin = true }
        gates.notifyAll()
        batches.waitForever { $0.count == 2 ? () : nil }
        #expect(batches.withLock { $0 } == [[0], [1, 2, 3]])
        gates.withLock { $0.mayEnd = true }
        gates.notifyAll()
        for thread in threads.withLock({ $0 }) { thread.join() }
    }

    @Test("after the end no request is accepted, and earlier requests are served")
    func closing() throws {
        let work = SharedWork<Int, Int>()
        let gate = Monitor(false)
        let outcomes = Monitor<[[Int]?]>([])
        let first = try WorkerThread(name: "client") {
            let outcome = work.run([1]) { batch in
                gate.waitForever { $0 ? () : nil }
                return batch
            }
            outcomes.withLock { $0.append(outcome) }
        }
        while work.counts.begun == 0 { sched_yield() }
        let second = try WorkerThread(name: "client") {
            let outcome = work.run([2]) { $0 }
            outcomes.withLock { $0.append(outcome) }
        }
        while work.counts.waiting == 0 { sched_yield() }
        let closing = try WorkerThread(name: "close") { _ = work.close() }
        while !work.isClosed { sched_yield() }
        #expect(work.run([3], by: { $0 }) == nil)
        gate.withLock { $0 = true }
        gate.notifyAll()
        for thread in [first, second, closing] { thread.join() }
        #expect(outcomes.withLock { Set($0) } == [[1], [2]])
        #expect(!work.close())
    }

    // MARK: Synchronization of the file system

    @Test("files do not wait for a synchronization of the file system that turns out to be slow")
    func slowCall() {
        var system = FileSystemSynchronizationPolicy(isSupported: true)
        system.begin(at: 0)
        #expect(system.isUsable(at: 50_000_000))
        #expect(!system.isUsable(at: 50_000_001))
        system.end(at: 60_000_000, isDone: true)
        #expect(!system.isUsable(at: 60_000_000))
    }

    @Test("after a failed synchronization of the file system, files are synchronized one by one")
    func failedCall() {
        var system = FileSystemSynchronizationPolicy(isSupported: true)
        system.begin(at: 0)
        system.end(at: 1000, isDone: false)
        #expect(!system.isUsable(at: 1000))
    }

    @Test(
        "after a slow synchronization of the file system, files are synchronized one by one until a trial is fast"
    )
    func pauses() {
        let second: Int64 = 1_000_000_000
        var system = FileSystemSynchronizationPolicy(isSupported: true)
        func run(from begin: Int64, to end: Int64) {
            system.begin(at: begin)
            system.end(at: end, isDone: true)
        }
        func trial(from begin: Int64, to end: Int64, isDone: Bool = true) {
            let isEarly = system.beginTrial(at: begin - 1)
            let begins = (0..<2).map { _ in system.beginTrial(at: begin) }
            #expect(!isEarly && begins == [true, false])
            #expect(!system.isUsable(at: begin))
            system.endTrial(from: begin, to: end, isDone: isDone)
        }
        #expect(system.isUsable(at: 0))
        run(from: 0, to: 20_000_000)
        #expect(system.isUsable(at: 20_000_000))
        // A slow call writes what had gathered, so the first trial follows it at once. It is usually fast.
        run(from: 0, to: second)
        trial(from: second, to: second + 1000)
        #expect(system.isUsable(at: second + 1000))
        var now = 2 * second
        run(from: second + 1000, to: now)
        for pause in [0, 1, 2, 4, 8, 16, 32, 60, 60] {
            let begin = now + Int64(pause) * second
            let isDone = pause.isMultiple(of: 4)
            now = isDone ? begin + second : begin + 1000
            trial(from: begin, to: now, isDone: isDone)
        }
        trial(from: now + 60 * second, to: now + 60 * second + 1000)
        now += 60 * second + 1000
        #expect(system.isUsable(at: now))
        // After a call that has failed, the first trial waits for a second.
        system.begin(at: now)
        system.end(at: now + 1000, isDone: false)
        now += 1000
        trial(from: now + second, to: now + second + 1000)
        #expect(!FileSystemSynchronizationPolicy(isSupported: false).isUsable(at: .max))
    }

    @Test("the blob area makes the trial in the background")
    func trial() throws {
        let directory = try TemporaryDirectory()
        let area = try FileBlobArea(DataDirectory(path: directory.path))
        defer { area.close() }
        // Any file system is usable here, because nothing has to be durable, and no trial is too slow.
        area.fileSystem.withLock { system in
            system = FileSystemSynchronizationPolicy(isSupported: true, slowTime: .max)
            system.end(at: SystemClock.monotonicNanoseconds() - 2_000_000_000, isDone: false)
        }
        #expect(!area.canSynchronizeTogether)
        let end = SystemClock.deadline(in: .seconds(120))
        while !area.canSynchronizeTogether, SystemClock.monotonicNanoseconds() < end { usleep(1000) }
        #expect(area.canSynchronizeTogether)
    }
}
