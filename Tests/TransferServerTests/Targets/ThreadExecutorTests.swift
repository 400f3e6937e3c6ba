import Glibc
import SystemCalls
import TestSupport
import Testing

@testable import TransferServer

/// Calls of asynchronous functions from threads that may block.
@Suite("Asynchronous calls of handlers", .timeLimit(.minutes(5)))
struct ThreadExecutorTests {
    private static let count = 300

    /// Blocks each caller until all callers have arrived.
    private actor Barrier {
        private let count: Int
        private var waiting: [CheckedContinuation<Void, Never>] = []

        init(_ count: Int) { self.count = count }

        func arrive() async {
            if waiting.count + 1 == count {
                for continuation in waiting { continuation.resume() }
                return
            }
            await withCheckedContinuation { waiting.append($0) }
        }
    }

    /// Calls `body` with the numbers from 0 to `count - 1`, each on its own thread, and returns the results in this
    /// order.
    private func call<Value: Sendable>(
        _ count: Int, _ body: @escaping @Sendable (Int) async -> Value
    ) async throws -> [Value?] {
        let results = Monitor<[Int: Value?]>([:])
        for number in 0..<count {
            _ = try WorkerThread(name: "caller") {
                let value = ThreadExecutor().run { await body(number) }
                results.withLock { $0[number] = .some(value) }
                results.notifyAll()
            }
        }
        return try await onThread {
            let all: [Int: Value?]? = results.wait(until: SystemClock.deadline(in: .seconds(120))) {
                $0.count == count ? $0 : nil
            }
            return try #require(all).sorted { $0.key < $1.key }.map(\.value)
        }
    }

    @Test("Hundreds of functions that await each other, an actor and a sleep do not block each other")
    func awaiting() async throws {
        let barrier = Barrier(Self.count)
        let results = try await call(Self.count) { number in
            await barrier.arrive()
            try? await Task.sleep(for: .milliseconds(10))
            return number
        }
        #expect(results == (0..<Self.count).map { $0 })
    }

    @Test("Functions that block occupy their own threads only")
    func blocking() async throws {
        let arrived = Monitor(0)
        let results = try await call(Self.count) { _ in
            arrived.withLock { $0 += 1 }
            arrived.notifyAll()
            // Blocks until all functions have been called.
            return arrived.wait(until: SystemClock.deadline(in: .seconds(60))) { $0 == Self.count ? true : nil }
        }
        #expect(results.allSatisfy { $0 == true })
    }

    @Test("Nonisolated code runs on the calling thread, even after an actor was awaited, and in child tasks")
    func threads() async throws {
        let barrier = Barrier(1)
        let threads: [UInt]? = try await onThread {
            ThreadExecutor().run { () async -> [UInt] in
                let before = ThreadIdentity.current
                await barrier.arrive()
                async let child = ThreadIdentity.current
                return [before, ThreadIdentity.current, await child]
            }
        }
        #expect(threads?.count == 3 && Set(threads ?? []).count == 1)
    }

    @Test("A canceled function that returns in time has a result")
    func canceled() async throws {
        let executor = ThreadExecutor()
        let isCanceled = try await onThread {
            executor.run {
                executor.cancel(within: .seconds(60))
                do { try await Task.sleep(for: .seconds(3600)) } catch { return true }
                return false
            }
        }
        #expect(isCanceled == true && executor.isCanceled)
    }

    @Test("A function can be canceled before it begins")
    func canceledBefore() async throws {
        let executor = ThreadExecutor()
        executor.cancel(within: .seconds(60))
        #expect(try await onThread { executor.run { Task.isCancelled } } == true)
    }

    @Test("The wait for a function that ignores its cancellation ends, and the function continues on another thread")
    func unfinished() async throws {
        let executor = ThreadExecutor()
        let gate = Barrier(2)
        let hasEnded = Monitor(false)
        // The function ends only after the gate was passed below, so a result here is the end of the wait.
        let result: Bool? = try await onThread {
            executor.run {
                executor.cancel(within: .milliseconds(50))
                await gate.arrive()
                hasEnded.withLock { $0 = true }
                hasEnded.notifyAll()
                return true
            }
        }
        #expect(result == nil)
        await gate.arrive()
        let ended: Bool? = try await onThread {
            hasEnded.wait(until: SystemClock.deadline(in: .seconds(60))) { $0 ? true : nil }
        }
        #expect(ended == true)
    }
}

/// The identity of the current thread.
private enum ThreadIdentity {
    static var current: UInt { UInt(pthread_self()) }
}
