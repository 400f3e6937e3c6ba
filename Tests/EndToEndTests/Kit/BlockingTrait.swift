import Synchronization
import Testing

/// Runs a test's body, which blocks in system calls, on threads of its own instead of the cooperative pool.
///
/// The number of these threads bounds how many servers run at the same time, whatever the width of the test run.
struct BlockingTrait: SuiteTrait, TestTrait, TestScoping {
    var isRecursive: Bool { true }

    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        // A suite has no body of its own: its scope would hold a thread while its tests wait for one.
        guard testCase != nil else { return try await function() }
        try await withTaskExecutorPreference(BlockingExecutor.shared) { try await function() }
    }
}

extension Trait where Self == BlockingTrait {
    static var blocking: Self { Self() }
}
