import Synchronization

/// How many uploads are remembered after their end, in memory: to count them in the catalog takes longer the more
/// there are.
final class FinishedUploads: Sendable {
    private let completeCount: Atomic<Int>
    private let invalidCount: Atomic<Int>
    private let lostCount = Atomic(0)

    init(complete: Int, invalid: Int) {
        completeCount = Atomic(complete)
        invalidCount = Atomic(invalid)
    }

    var complete: Int { completeCount.load(ordering: .relaxed) }
    var invalid: Int { invalidCount.load(ordering: .relaxed) }

    /// Uploads that became invalid because acknowledged bytes were missing, since the store was opened.
    var lost: Int { lostCount.load(ordering: .relaxed) }

    func addLost() { lostCount.add(1, ordering: .relaxed) }

    func add(_ phase: UploadRecord.Phase) {
        switch phase {
        case .complete: completeCount.add(1, ordering: .relaxed)
        case .invalid: invalidCount.add(1, ordering: .relaxed)
        case .receiving, .processing: break
        }
    }

    func remove(_ removed: RemovedUploads) {
        completeCount.subtract(removed.complete, ordering: .relaxed)
        invalidCount.subtract(removed.invalid, ordering: .relaxed)
    }

    /// Adds those that the store held when it was opened.
    func addCounted(complete: Int, invalid: Int) {
        completeCount.add(complete, ordering: .relaxed)
        invalidCount.add(invalid, ordering: .relaxed)
    }
}
