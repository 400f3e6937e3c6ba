import HTTPSemantics
import Foundation
import ResumableUpload
import Testing

@testable import UploadStorage

/// Explores every sequence of events up to a length, for an upload of at most two bytes, two leases and one waiting
/// request. Each operation that the machine requests succeeds or fails at every time at which a thread may report it.
/// Hand-over to another store, completion in steps, removal and expiry are explored apart from processing and staging.
@Suite struct UploadMachineTests {
    /// The state of the machine, of the threads and of the disk.
    private struct World: Hashable {
        var machine = UploadMachine()
        /// The epochs of the leases that are not released.
        var leases: [Int64] = []
        /// The acknowledgment that a thread is making.
        var advance: UploadMachine.Advance?
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
        /// Whether this store holds the upload. Otherwise another store changes the row and the bytes.
        var isHeld = true
        /// The lease whose holder completes the upload, and whether that began during the processing.
        var ending: Int64?
        var endsProcessing = false
        var removal = Removal.none
    }

    private enum Removal: Hashable {
        case none
        /// The row is read because the upload may have expired.
        case loading
        /// All leases have ended, and the row is removed as soon as no acknowledgment runs.
        case begun
    }

    private enum LeaseEvent: Hashable, CaseIterable {
        case append, appendLast, stage, commitStaged, discardStaged, setLength, acknowledge, queue, process, mark
        case markFailed, unmark
        case processingFailed, endProcessing, publish, decide, leaveDecided, complete, invalidate, allowTakeOver
        case release
        /// Parts of `complete`, between which other events happen.
        case beginEnding
    }

    private enum OtherEvent: Hashable, CaseIterable {
        case arrive, claim, claimLate, claimExclusively, leave, worked, workFailed, runQueued, acknowledged, rowFailed
        case synchronizationFailed, recordAtStop, endPublishing, forget, withdrawQueued
        /// The end of `complete`.
        case ended, endingFailed
        /// The row is committed, which no thread has reported yet.
        case committed
        /// Another store holds the upload from now on; it receives a byte; it removes the upload.
        case lost, otherAdvances, otherRemoves
        case remove, expire, removed, removalFailed
    }

    /// The events that are explored together.
    private struct Alphabet {
        var lease: [LeaseEvent]
        var other: [OtherEvent]
        var depth: Int

        /// One store, which processes and stages content.
        static let processing = Alphabet(
            lease: LeaseEvent.allCases.filter { $0 != .beginEnding },
            other: [
                .arrive, .claim, .claimLate, .claimExclusively, .leave, .worked, .workFailed, .runQueued, .acknowledged,
                .rowFailed, .synchronizationFailed, .recordAtStop, .endPublishing, .forget, .withdrawQueued,
            ], depth: 11)
        /// Several stores, and the removal of the upload.
        static let removal = Alphabet(
            lease: [.append, .appendLast, .acknowledge, .queue, .process, .endProcessing, .release, .beginEnding],
            other: OtherEvent.allCases.filter { ![.claimLate, .leave, .endPublishing, .forget].contains($0) }, depth: 10
        )
    }

    private static let ticket = 1

    private static func row(offset: Int64) -> CatalogRow {
        CatalogRow(
            id: UploadID(parsing: String(repeating: "0", count: 32)) ?? UploadID(), blob: "b", upload: .testing(),
            createdAt: 0,
            expiresAt: nil, epoch: 1, offset: offset, length: nil, phase: .receiving, intent: nil, digestStates: [])
    }

    private static func start(isRecorded: Bool) -> World {
        var world = World()
        world.hasRow = isRecorded
        world.machine.begin(row(offset: 0), reserved: 0, isRecorded: isRecorded)
        world.leases = [world.machine.epoch]
        return world
    }

    /// The state after an event; nil if the event is impossible in this state or is refused.
    private static func next(_ world: World, _ event: LeaseEvent, as lease: Int64) throws -> World? {
        var next = world
        let isProcessing = world.machine.activity == .processing
        // The store acknowledges all bytes before the target resource processes the upload.
        let isDurable =
            world.machine.durable == world.machine.received && world.machine.isRowCurrent && world.advance == nil
        // The thread of a lease that publishes does nothing else with the lease.
        if world.machine.isPublishing, lease == world.machine.processor,
            ![.decide, .leaveDecided, .complete, .invalidate].contains(event)
        {
            return nil
        }
        switch event {
        case .append, .appendLast:
            guard try world.machine.end(ofAppending: 1, as: lease) <= 2 else { return nil }
            next.machine.append(1)
            if event == .appendLast { next.machine.endContent() }
        case .stage: try next.machine.beginStaging(as: lease)
        case .commitStaged: try next.machine.commitStaged(as: lease)
        case .discardStaged: _ = next.machine.discardStaged(as: lease)
        case .setLength:
            guard let missing = try world.machine.reservation(forLength: 2, as: lease) else { return nil }
            next.machine.reserve(missing)
            next.machine.setLength(2)
        case .acknowledge:
            var goal: Int64?
            switch try next.machine.acknowledge(&goal, as: lease) {
            case .wait: return nil
            case .done(let offset):
                next.reported = max(next.reported, offset)
                next.isReported = true
            case .run(let advance): next.advance = advance
            }
        case .queue: if !next.machine.queueAcknowledgment(as: lease) { return nil }
        case .process:
            guard !world.machine.isStaging, try next.machine.enter(.processing, as: lease) else { return nil }
        case .mark:
            try world.machine.require(lease)
            guard isProcessing, isDurable else { return nil }
            next.machine.mark()
        case .markFailed:
            try world.machine.require(lease)
            guard isProcessing, isDurable else { return nil }
            next.machine.markFailed()
        case .unmark: if !next.machine.unmark(as: lease) { return nil }
        case .processingFailed: next.machine.processingFailed(as: lease)
        case .endProcessing: _ = next.machine.endProcessing(as: lease)
        case .publish:
            guard !world.machine.isStaging, !world.machine.isPublishing, isProcessing,
                try next.machine.beginPublishing(as: lease)
            else { return nil }
        case .decide:
            try world.machine.require(lease)
            // The decision creates the row if there is none, after the bytes were synchronized.
            guard isProcessing, world.machine.isPublishing, isDurable || !world.hasRow else { return nil }
            next.hasRow = true
            next.recorded = max(world.recorded, world.machine.received)
            if !world.hasRow { next.machine.record(offset: world.machine.received) }
            next.machine.decide()
        case .leaveDecided:
            guard lease == world.machine.epoch, isProcessing else { return nil }
            next.machine.leaveDecided()
        case .complete, .invalidate:
            next.hasRow = true
            next.machine.record(offset: 0)
            guard try next.machine.enter(.settling, as: lease) else { return nil }
            _ = next.machine.finish(
                as: event == .complete ? .complete(Response(status: 201)) : .invalid(reason: "no"))
        case .beginEnding:
            guard world.ending == nil, try next.machine.enter(.settling, as: lease) else { return nil }
            (next.ending, next.endsProcessing) = (lease, isProcessing)
        case .allowTakeOver: next.machine.allowTakeOver(of: lease)
        case .release:
            // A thread that completes the upload does nothing else with the lease.
            if lease == world.ending { return nil }
            if lease == world.machine.epoch {
                // A thread that publishes an upload reports the result before it releases the lease.
                guard !(isProcessing && (world.machine.isProcessingRecorded || world.machine.isDecided)) else {
                    return nil
                }
                _ = next.machine.discardStaged(as: lease)
                _ = next.machine.endProcessing(as: lease)
                next.machine.revoke()
            }
            next.leases.removeAll { $0 == lease }
        }
        return next == world ? nil : next
    }

    private static func next(_ world: World, _ event: OtherEvent) -> World? {
        var next = world
        switch event {
        case .arrive:
            guard world.machine.waiting.isEmpty else { return nil }
            next.machine.enqueue(ticket)
        case .leave: next.machine.leave(ticket)
        case .claim, .claimLate, .claimExclusively, .remove:
            guard !world.machine.waiting.isEmpty, world.work == nil else { return nil }
            switch next.machine.claim(ticket, isLate: event == .claimLate) {
            case .wait: break
            case .stillProcessing:
                next.reported = max(world.reported, world.machine.durable)
                next.isReported = true
            case .record(let advance): next.advance = advance
            case .load: next.work = .load
            case .settle: next.work = .settle
            case .granted where event == .remove:
                _ = next.machine.beginRemoval()
                next.removal = .begun
            case .granted:
                guard next.machine.isUnfinished else { break }
                _ = next.machine.takeOver(exclusive: event == .claimExclusively)
                next.leases = (next.leases + [next.machine.epoch]).suffix(2)
            }
        case .worked:
            switch world.work {
            case .load where !world.hasRow:
                // The request gets the response that the upload does not exist.
                next.machine.leaveActivity()
                next.machine.leave(ticket)
            case .load:
                next.isHeld = true
                next.machine.load(row(offset: world.recorded), hasBytes: world.removal == .none)
                if world.removal == .loading {
                    _ = next.machine.beginRemoval()
                    next.removal = .begun
                }
            case .settle:
                guard world.isHeld else { return nil }
                _ = next.machine.finish(as: .invalid(reason: "interrupted"))
            default: return nil
            }
            next.work = nil
            if next.removal == .loading { next.removal = .none }
        case .workFailed:
            if world.work == nil { return nil }
            next.work = nil
            if next.removal == .loading { next.removal = .none }
            next.machine.leaveActivity()
        case .runQueued: next.advance = next.machine.runQueuedAcknowledgment() ?? world.advance
        case .acknowledged:
            guard let advance = world.advance, world.hasCommitted || world.isHeld else { return nil }
            (next.advance, next.hasCommitted) = (nil, false)
            next.recorded = max(world.recorded, advance.offset)
            if !world.machine.isRecorded {
                next.machine.record(offset: advance.offset)
                next.hasRow = true
            }
            next.machine.acknowledged(advance)
            next.reported = max(world.reported, next.machine.durable)
        case .rowFailed, .synchronizationFailed:
            // The outcome of a commit can be unknown.
            guard world.advance != nil, event == .rowFailed || !world.hasCommitted else { return nil }
            (next.advance, next.hasCommitted) = (nil, false)
            if event == .rowFailed {
                next.machine.acknowledgmentFailed()
            } else {
                _ = next.machine.synchronizationFailed(duringCallOf: nil)
            }
        case .recordAtStop:
            guard let advance = next.machine.beginRecording() else { return nil }
            next.advance = advance
        case .endPublishing: next.machine.endPublishing()
        case .forget:
            // A publication without a row has failed.
            guard world.machine.isPublishing, !world.hasRow else { return nil }
            next.machine.revoke()
            next.machine.forget()
        case .withdrawQueued: next.machine.withdrawQueuedAcknowledgment()
        case .ended:
            guard world.ending != nil, world.isHeld else { return nil }
            next.ending = nil
            next.hasRow = true
            next.machine.record(offset: 0)
            _ = next.machine.finish(as: .complete(Response(status: 201)))
        case .endingFailed:
            guard let lease = world.ending else { return nil }
            next.ending = nil
            let isProcessing = world.endsProcessing && world.machine.epoch == lease
            next.machine.leaveActivity(for: isProcessing ? .processing : .idle)
        case .committed:
            guard let advance = world.advance, world.isHeld, world.hasRow, !world.hasCommitted else { return nil }
            next.hasCommitted = true
            next.recorded = max(world.recorded, advance.offset)
        case .lost:
            // The store notices it only if the upload is loaded.
            guard world.hasRow, world.isHeld, world.machine.isLoaded, world.machine.isUnfinished else { return nil }
            next.isHeld = false
            next.machine.drop()
        case .otherAdvances:
            guard !world.isHeld, world.hasRow, world.recorded < 2 else { return nil }
            next.recorded += 1
        case .otherRemoves:
            guard !world.isHeld, world.hasRow else { return nil }
            (next.hasRow, next.isReported, next.reported) = (false, false, 0)
        case .expire:
            guard world.work == nil, world.removal == .none else { return nil }
            switch next.machine.beginExpiry() {
            case .busy: return nil
            case .load: (next.work, next.removal) = (.load, .loading)
            case .removable:
                _ = next.machine.beginRemoval()
                next.removal = .begun
            }
        case .removed:
            guard world.removal == .begun, world.isHeld || !world.hasRow, next.machine.endAcknowledging() else {
                return nil
            }
            next.removal = .none
            (next.hasRow, next.recorded, next.isReported, next.reported) = (false, 0, false, 0)
            next.machine.forget()
        case .removalFailed:
            guard world.removal == .begun, next.machine.endAcknowledging() else { return nil }
            next.removal = .none
            next.machine.leaveActivity()
        }
        return next == world ? nil : next
    }

    /// A description of the rule that a step breaks; nil if it breaks no rule.
    private static func violation(_ world: World, _ next: World, _ isStale: Bool) -> String? {
        let (last, machine) = (world.machine, next.machine)
        if isStale { return "a lease that has ended changes the state" }
        if machine.epoch < last.epoch { return "the epoch decreases" }
        guard machine.durable <= machine.received, machine.received <= machine.written else {
            return "durable, received and written bytes are not in order"
        }
        if machine.isUnfinished && machine.durable < next.reported { return "a reported offset decreases" }
        if machine.isUnfinished && machine.durable > next.recorded {
            return "an offset is reported that the row does not have"
        }
        if next.isReported && !next.hasRow { return "an offset is reported for an upload without a row" }
        if machine.isLoaded && machine.isRecorded != next.hasRow {
            return "the machine does not know whether there is a row"
        }
        if machine.isPublishing && !machine.isRecorded && next.advance != nil { return "two threads create the row" }
        if next.recorded > world.recorded && world.isHeld && last.isUnfinished && last.written < next.recorded {
            return "the row counts bytes that were truncated"
        }
        if machine.received < last.received && machine.isUnfinished && last.isUnfinished && machine.hasBytes
            && machine.epoch == last.epoch
        {
            return "received bytes disappear under the same lease"
        }
        if last.isExclusive && next.leases.count > world.leases.count { return "an exclusive lease is taken over" }
        if (machine.acknowledgment == .running) != (next.advance != nil) { return "two acknowledgments run, or none" }
        if last.activity != .idle && next.leases.count > world.leases.count { return "two threads work on one upload" }
        return nil
    }

    /// Whether a waiting request does not get the upload after all pending work is done and all leases are released.
    private static func isStuck(_ world: World) throws -> Bool {
        var world = world
        if world.advance != nil { world = next(world, .acknowledged) ?? next(world, .rowFailed) ?? world }
        if world.work != nil { world = next(world, .worked) ?? next(world, .workFailed) ?? world }
        if world.ending != nil { world = next(world, .ended) ?? next(world, .endingFailed) ?? world }
        if world.removal == .begun { world = next(world, .removed) ?? next(world, .removalFailed) ?? world }
        if world.machine.isPublishing { world.machine.endPublishing() }
        let lease = world.machine.epoch
        if world.leases.contains(lease) {
            if world.machine.activity == .processing, world.machine.isProcessingRecorded || world.machine.isDecided {
                _ = world.machine.finish(as: .invalid(reason: "interrupted"))
            }
            world = try next(world, .release, as: lease) ?? world
        }
        world.machine.leave(ticket)
        world.machine.enqueue(ticket)
        for _ in 0..<3 {
            switch world.machine.claim(ticket, isLate: false) {
            case .granted: return false
            case .wait, .stillProcessing, .record: return true
            case .load where !world.hasRow: return false
            case .load, .settle: world.work = world.machine.activity == .loading ? .load : .settle
            }
            world = next(world, .worked) ?? world
        }
        return true
    }

    @Test(
        "no sequence of events decreases an offset, makes two threads work on an upload, or a request wait forever",
        arguments: [true, false])
    func exploration(isRecorded: Bool) throws { try Self.explore(.processing, isRecorded: isRecorded) }

    @Test(
        "the same holds if another store takes the upload over, if its end fails, and if it is removed or expires",
        arguments: [true, false])
    func removal(isRecorded: Bool) throws { try Self.explore(.removal, isRecorded: isRecorded) }

    private static func explore(_ alphabet: Alphabet, isRecorded: Bool) throws {
        let start = Self.start(isRecorded: isRecorded)
        let depth = ProcessInfo.processInfo.environment["ONWARD_DEPTH"].flatMap { Int($0) } ?? alphabet.depth
        var seen: Set<World> = [start]
        var border = [start]
        for _ in 0..<depth {
            var reached: [World] = []
            func visit(_ world: World, _ next: World, _ event: Any, isStale: Bool) throws {
                let violation =
                    try Self.violation(world, next, isStale) ?? (Self.isStuck(next) ? "a request waits forever" : nil)
                if let violation { Issue.record("\(violation): \(event) in \(world) gives \(next)") }
                if seen.insert(next).inserted { reached.append(next) }
            }
            for world in border {
                for event in alphabet.other {
                    if let next = Self.next(world, event) { try visit(world, next, event, isStale: false) }
                }
                for lease in world.leases {
                    for event in alphabet.lease {
                        guard let next = try? Self.next(world, event, as: lease) else { continue }
                        let isStale = lease != world.machine.epoch && event != .release
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
