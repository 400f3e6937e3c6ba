import Foundation
import HTTPSemantics
import ResumableUpload
import TestSupport
import Testing

@testable import UploadStorage

/// Explores every sequence of events up to a length, for an upload of at most two bytes, two leases and two waiting
/// requests. Each operation that the machine requests succeeds or fails at every time at which a thread may report it.
/// Release for another store, completion in steps, removal and expiry are explored apart from processing and staging.
enum UploadMachineExploration {
    /// The state of the machine, of the threads and of the disk.
    struct World: Hashable {
        var machine = UploadMachine()
        /// The epochs of the leases that are not released.
        var leases: [Int64] = []
        /// The acknowledgment that a thread is making.
        var advance: UploadMachine.Advance?
        /// The lease whose call makes the acknowledgment, if its holder has requested a notification.
        var caller: Int64?
        /// The work that a thread is doing: loading the upload or settling it.
        var work: UploadMachine.Claim?
        /// The offset in the row.
        var recorded: Int64 = 0
        /// The highest offset that may have been reported to a client.
        var reported: Int64 = 0
        /// Whether an offset, which may be 0, may have been reported to a client.
        var isReported = false
        var hasRow = true
        /// Whether the row has the offset of `advance`, although no thread has reported that yet.
        var hasCommitted = false
        /// The lease whose holder waits in a call, or has got an error from one.
        var waitingHolder: Int64?
        /// Whether several stores share the storage. Then the holder of a lease looks for failures between its calls.
        var isShared = false
        /// Whether this store holds the upload. Otherwise another store changes the row and the bytes.
        var isHeld = true
        /// The lease whose holder completes the upload, and whether that began during the processing.
        var ending: Int64?
        var endsProcessing = false
        var removal = Removal.none
        /// Whether the thread that processes or publishes the upload has to acknowledge its bytes first. True until the
        /// machine has allowed the processing.
        var shouldAcknowledge = true
        /// The lease that is being released.
        var releasing: Int64?
        var holdRelease: HoldRelease?
        /// The tickets of the waiting requests, in the order in which they came.
        var arrived: [Int] = []

        /// Removes the tickets of requests that do not wait any more. The first of the other requests gets the first ticket.
        mutating func renumberTickets() {
            arrived.removeAll { !machine.waiting.contains($0) }
            if arrived == [secondTicket] { (arrived, machine.waiting) = ([ticket], [ticket]) }
        }

        /// The same state with its epochs numbered in their order. The machine only compares epochs, so it behaves in the
        /// same way, and states that differ only in the number of earlier leases are explored once.
        var withSmallEpochs: World {
            let others = [
                machine.processor, machine.failure?.lease, machine.holdRelease?.epoch, advance?.epoch, caller,
                waitingHolder, ending,
                releasing,
                holdRelease?.event.epoch,
            ].compactMap { $0 }
            let epochs = Set(leases + others + [machine.epoch]).sorted()
            func mapped(_ epoch: Int64) -> Int64 { Int64(epochs.firstIndex(of: epoch)!) }
            var world = self
            if !leases.contains(machine.failure?.lease ?? -1) { world.machine.failure = nil }
            world.machine.epoch = mapped(machine.epoch)
            world.machine.processor = machine.processor.map(mapped)
            if let epoch = world.machine.failure?.lease { world.machine.failure?.lease = mapped(epoch) }
            if let epoch = machine.holdRelease?.epoch { world.machine.holdRelease?.epoch = mapped(epoch) }
            world.leases = leases.map(mapped)
            if let epoch = advance?.epoch { world.advance?.epoch = mapped(epoch) }
            world.caller = caller.map(mapped)
            world.waitingHolder = waitingHolder == machine.epoch ? mapped(machine.epoch) : nil
            world.ending = ending.map(mapped)
            world.releasing = releasing.map(mapped)
            if let epoch = holdRelease?.event.epoch { world.holdRelease?.event.epoch = mapped(epoch) }
            return world
        }
    }

    struct HoldRelease: Hashable {
        var event: UploadMachine.HoldRelease
        var hasQueued = false
        var hasFailed = false
        /// Whether the thread has ended before the upload was released, so that requests can use it again.
        var hasPaused = false
        var isPaused = false
    }

    enum Removal: Hashable {
        case none
        /// The row is read because the upload may have expired.
        case loading
        /// The same, but the upload has not expired.
        case loadingEarly
        /// All leases have ended, and the row is removed as soon as no acknowledgment runs.
        case begun
        /// The upload is being removed although it has not expired.
        case begunEarly
    }

    enum LeaseEvent: Hashable, CaseIterable {
        case append, appendLast, stage, commitStaged, discardStaged, setLength, acknowledge, queue, process, mark
        case markFailed, unmark
        case processingFailed, endProcessing, publish, decide, complete, invalidate, observe, appendFailed
        case release
        /// A release whose final response cannot be stored.
        case releaseFailed
        /// The first parts of `complete` and `release`; other events happen before the last part.
        case beginEnding, beginRelease
    }

    enum OtherEvent: Hashable, CaseIterable {
        case arrive, arriveSecond, claim, claimSecond, claimLate, claimExclusively, leave, leaveSecond, worked,
            workedLost, workFailed, runQueued, acknowledged
        case rowFailed
        case synchronizationFailed, recordAtStop, publishingFailed, forget, withdrawQueued
        /// The last parts of `complete` and `release`.
        case ended, endingFailed, endRelease
        /// The row is committed, which no thread has reported yet.
        case committed
        /// Another store holds the upload from now on; it receives a byte; it removes the upload.
        case lost, otherAdvances, otherRemoves
        /// The upload is not in use any more, and has no row.
        case endUse
        case remove, expire, expireEarly, removed, removalFailed
        /// The upload is released for another store.
        case holdRelease, continueHoldRelease, pauseHoldRelease
        /// The other store repeats its request after the deadline of the release.
        case holdReleaseLate
    }

    /// The events that are explored together.
    struct Alphabet {
        var lease: [LeaseEvent]
        var other: [OtherEvent]
        var depth: Int
        var isShared = true

        /// One store, which processes and stages content.
        static let processing = Alphabet(
            lease: LeaseEvent.allCases.filter { ![.beginEnding, .beginRelease, .observe, .appendFailed].contains($0) },
            other: [
                .arrive, .claim, .claimLate, .claimExclusively, .leave, .worked, .workedLost, .workFailed, .runQueued,
                .acknowledged, .rowFailed, .synchronizationFailed, .recordAtStop, .publishingFailed, .forget,
                .withdrawQueued,
            ], depth: 11, isShared: false)
        /// Several stores, and the removal of the upload.
        static let removal = Alphabet(
            lease: [
                .append, .appendLast, .acknowledge, .queue, .process, .endProcessing, .beginRelease, .beginEnding,
            ],
            other: OtherEvent.allCases.filter {
                ![
                    .arriveSecond, .claimSecond, .leaveSecond, .claimLate, .leave, .publishingFailed, .forget,
                    .holdRelease,
                    .continueHoldRelease, .pauseHoldRelease,
                    .holdReleaseLate,
                ].contains($0)
            }, depth: 10)
        /// Two requests wait.
        static let queue = Alphabet(
            lease: [
                .append, .appendFailed, .appendLast, .acknowledge, .queue, .process, .endProcessing, .complete,
                .observe,
                .release,
            ],
            other: [
                .arrive, .arriveSecond, .claim, .claimSecond, .claimLate, .claimExclusively, .leave, .leaveSecond,
                .worked, .workFailed, .runQueued, .acknowledged, .rowFailed, .synchronizationFailed,
            ], depth: 8, isShared: false)
        /// The release of the upload for another store.
        static let holdRelease = Alphabet(
            lease: [
                .append, .appendLast, .stage, .commitStaged, .acknowledge, .queue, .process, .endProcessing, .observe,
                .release,
            ],
            other: [
                .arrive, .claim, .claimExclusively, .worked, .workFailed, .runQueued, .acknowledged, .rowFailed,
                .synchronizationFailed, .withdrawQueued, .lost, .holdRelease, .continueHoldRelease, .pauseHoldRelease,
                .holdReleaseLate,
            ], depth: 9)
        /// A release while the upload is completed.
        static let holdReleaseOfEnd = Alphabet(
            lease: [
                .append, .appendLast, .acknowledge, .process, .mark, .endProcessing, .publish, .complete, .beginEnding,
                .observe,
            ],
            other: holdReleaseEvents + [.publishingFailed, .ended, .endingFailed], depth: 8)
        /// A release while the upload is removed.
        static let holdReleaseOfRemoval = Alphabet(
            lease: [.append, .acknowledge, .queue, .observe, .beginRelease],
            other: holdReleaseEvents + [
                .endRelease, .remove, .expire, .expireEarly, .removed, .removalFailed, .otherRemoves,
            ], depth: 8)
        private static let holdReleaseEvents: [OtherEvent] = [
            .arrive, .claim, .worked, .workFailed, .runQueued, .acknowledged, .rowFailed, .lost, .holdRelease,
            .continueHoldRelease, .pauseHoldRelease, .holdReleaseLate,
        ]
    }

    static let ticket = 1
    static let secondTicket = 2

    /// The ticket of the request that claims the upload in this event; nil for other events.
    static func claimingTicket(_ world: World, _ event: OtherEvent) -> Int? {
        switch event {
        case .claim, .claimLate, .claimExclusively, .remove: world.arrived.first
        case .claimSecond: world.arrived.dropFirst().first
        default: nil
        }
    }

    static func row(offset: Int64, expiresAt: Int64? = nil) -> CatalogRow {
        CatalogRow(
            id: UploadID(parsing: String(repeating: "0", count: 32)) ?? UploadID(), blob: "b", upload: .testing(),
            createdAt: 0, expiresAt: expiresAt, epoch: 1, offset: offset, length: nil, phase: .receiving, intent: nil,
            digestStates: [])
    }

    static func start(isRecorded: Bool) -> World {
        var world = World()
        world.hasRow = isRecorded
        world.machine.begin(row(offset: 0), reserved: 0, isRecorded: isRecorded)
        world.leases = [world.machine.epoch]
        return world
    }

    static func explore(_ alphabet: Alphabet, isRecorded: Bool) throws {
        var start = Self.start(isRecorded: isRecorded)
        start.isShared = alphabet.isShared
        let depth =
            ProcessInfo.processInfo.environment["ONWARD_DEPTH"].flatMap { Int($0) }
            ?? (SeededGenerator.isShort ? min(alphabet.depth - 1, 9) : alphabet.depth)
        var seen: Set<World> = [start]
        var border = [start]
        var hasFailed = false
        for _ in 0..<depth {
            var reached: [World] = []
            func visit(_ world: World, _ next: World, _ event: Any, isStale: Bool) throws {
                var violation = Self.violation(world, next, event as? OtherEvent, isStale)
                var kept = next.machine.epoch == world.machine.epoch ? next : next.withSmallEpochs
                _ = kept.machine.beginNotification()
                // No event depends on it.
                kept.machine.canHaveRemovedBytes = false
                if seen.insert(kept).inserted {
                    reached.append(kept)
                    if violation == nil, try Self.isStuck(kept) { violation = "a request waits forever" }
                }
                if let violation {
                    hasFailed = true
                    Issue.record("\(violation): \(event) in \(world) gives \(next)")
                }
            }
            for world in border where !hasFailed {
                for event in alphabet.other {
                    if let next = Self.next(world, event) { try visit(world, next, event, isStale: false) }
                }
                for lease in world.leases {
                    for event in alphabet.lease {
                        guard let next = try? Self.next(world, event, as: lease) else { continue }
                        let isRelease = event == .release || event == .beginRelease
                        let isStale =
                            lease != world.machine.epoch && !(isRelease && next.machine == world.machine)
                        try visit(world, next, event, isStale: isStale)
                    }
                }
            }
            border = reached
        }
        print("explored \(seen.count) states")
        #expect(seen.count > 1000)
    }
}
