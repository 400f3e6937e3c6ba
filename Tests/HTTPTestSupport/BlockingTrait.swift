import SystemCalls
import TestSupport
import Testing

/// Runs the body of a test, which blocks in system calls, on separate threads instead of the cooperative pool. It
/// starts no more bodies than there are threads, so that a body that has waited continues without a delay.
///
/// The number of threads bounds the number of servers that run at the same time, independently of the parallelism of
/// the test run. The time limit of a body starts with the body. Unlike that of `timeLimit`, it does not include the
/// wait for a thread, which depends on the number of tests and on how busy the machine is.
package struct BlockingTrait: SuiteTrait, TestTrait, TestScoping {
    /// Whether the running body has already been admitted.
    @TaskLocal private static var isAdmitted = false

    let limit: Duration

    package var isRecursive: Bool { true }

    package func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        // A suite has no body: its scope would occupy a thread while its tests wait for one.
        guard testCase != nil, !Self.isAdmitted else { return try await function() }
        if let reason = SharedStorageExceptions.reason(for: test) { return try Self.skip(test, reason) }
        // The list has the trait of the test after that of its suite, so the limit of the test applies.
        let limit = test.traits.reduce(limit) { ($1 as? Self)?.limit ?? $0 }
        await Admission.shared.enter()
        defer { Admission.shared.leave() }
        try await Self.$isAdmitted.withValue(true) {
            try await SharedStorage.$nodes.withValue(SharedStorageExceptions.nodes(for: test)) {
                try await withoutActuallyEscaping(function) { try await Self.run(within: limit, $0) }
            }
        }
    }

    private static func skip(_ test: Test, _ reason: String) throws {
        #if compiler(>=6.3)
            try Test.cancel("\(reason)")
        #else
            print("\(test.name) does not run: it \(reason)")
        #endif
    }

    /// Runs a body on these threads. If the body runs for longer than `limit`, this method records an issue and cancels
    /// the body.
    package static func run(within limit: Duration, _ body: @escaping @Sendable () async throws -> Void) async throws {
        let body = Task(executorPreference: BlockingExecutor.shared) { try await body() }
        let timer = Task {
            try await Task.sleep(for: limit)
            Issue.record("the test has run for \(limit)")
            body.cancel()
        }
        defer { timer.cancel() }
        try await body.value
    }
}

/// Admits as many test bodies as there are threads; all other bodies wait.
private final class Admission: Sendable {
    static let shared = Admission(places: BlockingExecutor.threads)

    private struct State {
        var free: Int
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state: Monitor<State>

    init(places: Int) { state = Monitor(State(free: places)) }

    func enter() async {
        await withCheckedContinuation { continuation in
            let isAdmitted = state.withLock { state in
                guard state.free > 0 else {
                    state.waiting.append(continuation)
                    return false
                }
                state.free -= 1
                return true
            }
            if isAdmitted { continuation.resume() }
        }
    }

    func leave() {
        let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
            if state.waiting.isEmpty {
                state.free += 1
                return nil
            }
            return state.waiting.removeFirst()
        }
        next?.resume()
    }
}

extension Trait where Self == BlockingTrait {
    package static var blocking: Self { .blocking(limit: .seconds(15 * 60)) }

    /// - Parameter limit: the maximum time of the body.
    package static func blocking(limit: Duration) -> Self { Self(limit: limit) }
}
