import HTTPSemantics
import Testing

@testable import UploadStorage

/// The state machine of an upload, as a value.
@Suite struct UploadMachineTests {
    @Test(
        "no sequence of events decreases an offset, makes two threads work on an upload, or a request wait forever",
        arguments: [true, false])
    func exploration(isRecorded: Bool) throws {
        try UploadMachineExploration.explore(.processing, isRecorded: isRecorded)
    }

    @Test(
        "the same holds if another store takes the upload over, if its end fails, and if it is removed or expires",
        arguments: [true, false])
    func removal(isRecorded: Bool) throws { try UploadMachineExploration.explore(.removal, isRecorded: isRecorded) }

    @Test(
        "an upload is released for another store after its bytes are durable or after a failure, and no request uses it meanwhile"
    )
    func holdRelease() throws { try UploadMachineExploration.explore(.holdRelease, isRecorded: true) }

    @Test(
        "requests are served in the order in which they came, and each ends the one that sends",
        arguments: [true, false])
    func queue(isRecorded: Bool) throws { try UploadMachineExploration.explore(.queue, isRecorded: isRecorded) }

    @Test("no upload is released while a thread completes it, and its end remains possible")
    func holdReleaseOfEnd() throws { try UploadMachineExploration.explore(.holdReleaseOfEnd, isRecorded: true) }

    @Test("no upload is released while a thread removes it")
    func holdReleaseOfRemoval() throws { try UploadMachineExploration.explore(.holdReleaseOfRemoval, isRecorded: true) }

    @Test("a target that can run again needs durable bytes only if the upload has a row", arguments: [true, false])
    func repeatableTarget(isRecorded: Bool) throws {
        var machine = UploadMachineExploration.start(isRecorded: isRecorded).machine
        let reservation = try machine.beginProcessing(as: machine.epoch, shouldMarkDurably: false)
        #expect(reservation == .granted(shouldAcknowledge: isRecorded))
    }

    @Test("a release ends a processing without an effect at once, and completes one that may have had an effect")
    func releaseDuringProcessing() throws {
        var machine = UploadMachineExploration.start(isRecorded: true).machine
        let lease = machine.epoch
        _ = try machine.beginProcessing(as: lease, shouldMarkDurably: true)
        var marked = machine
        marked.mark()
        let step = machine.beginRelease(of: lease)
        #expect(step == .acknowledge && machine.activity == .idle)
        let markedStep = marked.beginRelease(of: lease)
        #expect(markedStep == .completeAsInterrupted && marked.activity == .processing)
    }

    @Test("a release for another store tries once to make the bytes durable")
    func failedHoldRelease() {
        var machine = UploadMachineExploration.start(isRecorded: true).machine
        machine.append(1)
        guard case .acknowledge(let holdRelease) = machine.beginHoldRelease(at: 0, until: 1) else {
            Issue.record("the release does not begin")
            return
        }
        let first = machine.continueHoldRelease(holdRelease, hasQueued: false)
        #expect(first == .acknowledge)
        let waiting = machine.continueHoldRelease(holdRelease, hasQueued: true)
        #expect(waiting == .wait)
        _ = machine.runQueuedAcknowledgment()
        machine.acknowledgmentFailed()
        let last = machine.continueHoldRelease(holdRelease, hasQueued: true)
        #expect(last == .release)
    }

    /// A machine that was dropped, and loaded again, while a lease ended; and that lease.
    private static func machineAfterLostEnding() throws -> (machine: UploadMachine, lease: Int64) {
        var machine = UploadMachineExploration.start(isRecorded: true).machine
        let lease = machine.epoch
        try machine.beginStaging(as: lease)
        _ = try machine.beginEnding(as: lease)
        machine.drop()
        _ = machine.load(UploadMachineExploration.row(offset: 0), fence: 1, hasBytes: true)
        return (machine, lease)
    }

    @Test("the failed end of a lease that was lost does not affect the end of a later lease")
    func lateFailure() throws {
        var (machine, first) = try Self.machineAfterLostEnding()
        machine.takeOver(exclusive: false)
        let reservation = try machine.beginEnding(as: machine.epoch)
        #expect(reservation == .granted(shouldAcknowledge: false))
        machine.endingFailed(as: first)
        #expect(machine.activity == .settling)
        machine.endingFailed(as: machine.epoch)
        #expect(machine.activity == .idle)
    }

    @Test(
        "the failed end of a lease that was lost does not affect a later removal or settlement",
        arguments: [false, true])
    func lateFailureDuringRemoval(isSettlingNeeded: Bool) throws {
        var (machine, lease) = try Self.machineAfterLostEnding()
        if isSettlingNeeded {
            machine.mark()
            machine.enqueue(1)
            let claim = machine.claim(1, isLate: false)
            #expect(claim == .settle)
        } else {
            machine.beginRemoval()
        }
        machine.endingFailed(as: lease)
        #expect(machine.activity == .settling)
    }

    @Test("the late end of a publication whose bytes were lost does not affect the publication of a later lease")
    func lateEndOfPublication() throws {
        var machine = UploadMachineExploration.start(isRecorded: true).machine
        let first = machine.epoch
        _ = try machine.beginProcessing(as: first, shouldMarkDurably: false)
        _ = try machine.beginPublishing(as: first)
        machine.synchronizationFailed(.stateLost, duringCallOf: first, isAwaited: false)
        _ = machine.load(UploadMachineExploration.row(offset: 0), fence: 1, hasBytes: true)
        machine.takeOver(exclusive: false)
        _ = try machine.beginProcessing(as: machine.epoch, shouldMarkDurably: false)
        _ = try machine.beginPublishing(as: machine.epoch)
        machine.publishingFailed(as: first)
        #expect(machine.activity == .publishing)
        machine.publishingFailed(as: machine.epoch)
        #expect(machine.activity == .processing)
    }

    @Test("staged bytes are not processed, and a lease that has ended processes nothing")
    func processingIsRefused() throws {
        var machine = UploadMachineExploration.start(isRecorded: true).machine
        try machine.beginStaging(as: machine.epoch)
        #expect(throws: StoreError.invalidState("staged bytes are neither committed nor discarded")) {
            _ = try machine.beginProcessing(as: machine.epoch, shouldMarkDurably: true)
        }
        #expect(throws: StoreError.superseded) {
            _ = try machine.beginProcessing(as: machine.epoch - 1, shouldMarkDurably: true)
        }
    }

    @Test("only an expired row without an interrupted end is loaded for its removal")
    func loadExpired() {
        func isRemovable(_ change: (inout CatalogRow) -> Void) -> Bool {
            var row = UploadMachineExploration.row(offset: 0, expiresAt: 5)
            change(&row)
            var machine = UploadMachine()
            let expiry = machine.beginExpiry(of: nil, at: 5)
            #expect(expiry == .load)
            defer { #expect(machine.activity == .idle) }
            return machine.loadExpired(row, fence: 1, at: 5) == .removable
        }
        #expect(isRemovable { _ in })
        #expect(!isRemovable { $0.expiresAt = 6 })
        #expect(!isRemovable { $0.expiresAt = nil })
        #expect(!isRemovable { $0.phase = .processing })
        #expect(!isRemovable { $0.phase = .complete(Response(status: 201)) })
    }

    @Test("staged bytes that are dropped may remain on the disk until bytes are synchronized")
    func removedBytes() throws {
        var machine = UploadMachineExploration.start(isRecorded: true).machine
        #expect(!machine.canHaveRemovedBytes)
        _ = try machine.beginAppending(1, as: machine.epoch)
        machine.append(1)
        try machine.beginStaging(as: machine.epoch)
        machine.append(1)
        machine.discardStaged(as: machine.epoch)
        #expect(machine.canHaveRemovedBytes && machine.written == 1)
        var goal: Int64?
        guard case .run(let advance) = try machine.acknowledge(&goal, as: machine.epoch) else {
            return #expect(Bool(false), "nothing is acknowledged")
        }
        #expect(advance.hasNewBytes && !machine.canHaveRemovedBytes)
        machine.acknowledged(advance)
        try machine.beginStaging(as: machine.epoch)
        try machine.commitStaged(as: machine.epoch)
        #expect(!machine.canHaveRemovedBytes)
        // What an earlier process has removed is unknown.
        _ = machine.load(UploadMachineExploration.row(offset: 1), fence: 1, hasBytes: true)
        #expect(machine.canHaveRemovedBytes)
    }

    @Test("the loss of a hold drops only the state that was read with it")
    func holdLost() {
        var machine = UploadMachineExploration.start(isRecorded: true).machine
        _ = machine.load(UploadMachineExploration.row(offset: 1), fence: 7, hasBytes: true)
        let loaded = machine
        machine.holdLost(6)
        #expect(machine == loaded)
        machine.holdLost(7)
        #expect(!machine.isLoaded && !machine.isCurrent(loaded.epoch))
    }

    @Test("bytes are reserved as they arrive only if the length is unknown")
    func missingReservation() {
        var machine = UploadMachineExploration.start(isRecorded: true).machine
        machine.reserve(10)
        #expect(machine.missingReservation(upTo: 12) == 2)
        #expect(machine.missingReservation(upTo: 9) == 0)
        machine.setLength(20)
        #expect(machine.missingReservation(upTo: 12) == 0)
    }

    @Test("a plain upload, and an upload without a row, end with their lease")
    func endWithoutRow() {
        var recorded = UploadMachineExploration.start(isRecorded: true).machine
        recorded.reserve(3)
        let epoch = recorded.epoch
        let refused = recorded.endWithoutRow(isTransient: false)
        #expect(refused == .refused)
        var plain = recorded
        let end = plain.endWithoutRow(isTransient: true)
        #expect(end == .removeRow(reserved: 3, epoch: epoch))
        #expect(!plain.isLoaded && !plain.isCurrent(epoch))
        let second = plain.endWithoutRow(isTransient: true)
        #expect(second == .refused)
        var unrecorded = UploadMachineExploration.start(isRecorded: false).machine
        var unknown = unrecorded
        let unrefused = unrecorded.endWithoutRow(isTransient: false)
        #expect(unrefused == .ended(reserved: 0))
        // The commit may have created the row, which must not remain.
        unknown.recordingFailed()
        #expect(!unknown.isRecorded)
        let uncertain = unknown.endWithoutRow(isTransient: false)
        #expect(uncertain == .removeRow(reserved: 0, epoch: epoch))
    }

    @Test("a holder that ends the processing, and is about to respond, is not notified of a take-over")
    func endOfProcessing() throws {
        var machine = UploadMachineExploration.start(isRecorded: true).machine
        machine.observe(machine.epoch)
        #expect(machine.notification == .atEnd)
        _ = try machine.beginProcessing(as: machine.epoch, shouldMarkDurably: false)
        var responding = machine
        _ = responding.endProcessing(as: machine.epoch)
        for (isNotified, var machine) in [(true, machine), (false, responding)] {
            machine.takeOver(exclusive: false)
            let (first, second) = (machine.beginNotification(), machine.beginNotification())
            #expect(first == (isNotified ? .due : .none) && second == .none)
        }
    }

    @Test("a call of a lease that a failed synchronization has ended returns the failure if its holder waits in a call")
    func failureOfLease() throws {
        var machine = UploadMachineExploration.start(isRecorded: true).machine
        let lease = machine.epoch
        _ = try machine.beginAppending(1, as: lease)
        var sending = machine
        machine.appendingStopped()
        machine.synchronizationFailed(.stateLost, duringCallOf: nil, isAwaited: false)
        #expect(throws: StoreError.stateLost) { try machine.require(lease) }
        #expect(throws: StoreError.superseded) { try machine.require(lease - 1) }
        sending.synchronizationFailed(.stateLost, duringCallOf: nil, isAwaited: false)
        #expect(throws: StoreError.superseded) { try sending.require(lease) }
    }

    @Test("the row of a decided publication that failed remains, and its lease ends")
    func leaveRow() {
        var machine = UploadMachineExploration.start(isRecorded: true).machine
        let epoch = machine.epoch
        machine.reserve(10)
        machine.append(4)
        let undecided = machine.leaveRow()
        #expect(undecided == nil)
        machine.decide()
        let surplus = machine.leaveRow()
        #expect(surplus == 6)
        #expect(!machine.isLoaded && !machine.isDecided && !machine.isCurrent(epoch) && machine.reserved == 0)
    }
}
