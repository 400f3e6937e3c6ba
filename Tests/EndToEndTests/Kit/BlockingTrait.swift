import SystemCalls
import Testing

/// Runs a test's body, which blocks in system calls, on threads of its own instead of the cooperative pool, and no more
/// bodies at a time than there are threads: one that waits for something continues at once when it comes.
///
/// The number of these threads bounds how many servers run at the same time, whatever the width of the test run. A body has a
/// time limit, which begins with the body: unlike that of `timeLimit`, it does not include the wait for a thread, which depends
/// on how many tests there are and how busy the machine is.
struct BlockingTrait: SuiteTrait, TestTrait, TestScoping {
    /// Whether the body that runs has its place already.
    @TaskLocal private static var isAdmitted = false

    let limit: Duration

    var isRecursive: Bool { true }

    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        // A suite has no body of its own: its scope would hold a thread while its tests wait for one.
        guard testCase != nil, !Self.isAdmitted else { return try await function() }
        // The trait of a test comes after that of its suite.
        let limit = test.traits.reduce(limit) { ($1 as? Self)?.limit ?? $0 }
        await Admission.shared.enter()
        defer { Admission.shared.leave() }
        try await Self.$isAdmitted.withValue(true) {
            try await withoutActuallyEscaping(function) { try await Self.run(within: limit, $0) }
        }
    }

    /// Runs a body on its threads. If that takes longer than `limit`, it records an issue and cancels the body.
    static func run(within limit: Duration, _ body: @escaping @Sendable () async throws -> Void) async throws {
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

/// Places for test bodies, as many as there are threads for them.
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
    static var blocking: Self { .blocking(limit: .seconds(15 * 60)) }

    /// - Parameter limit: how long the body may take.
    static func blocking(limit: Duration) -> Self { Self(limit: limit) }
}
