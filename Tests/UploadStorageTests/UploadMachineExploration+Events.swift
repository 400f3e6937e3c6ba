import HTTPSemantics
import ResumableUpload

@testable import UploadStorage

extension UploadMachineExploration {
    /// The state after an event; nil if the event is impossible in this state or is refused.
    static func next(_ world: World, _ event: LeaseEvent, as lease: Int64) throws -> World? {
        var next = world
        let isProcessing = world.machine.isProcessing
        // The store acknowledges all bytes before the target resource processes the upload.
        let isDurable =
            world.machine.durable == world.machine.received && world.machine.isRowCurrent && world.advance == nil
        // The thread of a lease that publishes does nothing else with the lease.
        if world.machine.activity == .publishing, lease == world.machine.processor,
            ![.decide, .complete, .invalidate].contains(event)
        {
            return nil
        }
        // The thread that releases the lease only waits for an acknowledgment.
        if lease == world.releasing, event != .acknowledge { return nil }
        switch event {
        case .append, .appendLast:
            guard try next.machine.beginAppending(1, as: lease) <= 2 else { return nil }
            next.waitingHolder = nil
            next.machine.append(1)
            if event == .appendLast {
                next.machine.endContent()
                next.shouldAcknowledge = true
            }
        case .stage: try next.machine.beginStaging(as: lease)
        case .commitStaged: try next.machine.commitStaged(as: lease)
        case .discardStaged: next.machine.discardStaged(as: lease)
        case .setLength:
            guard let missing = try world.machine.reservation(forLength: 2, as: lease) else { return nil }
            next.machine.reserve(missing)
            next.machine.setLength(2)
        case .acknowledge:
            var goal: Int64?
            switch try next.machine.acknowledge(&goal, as: lease) {
            case .wait: next.waitingHolder = lease
            case .done(let offset):
                next.waitingHolder = nil
                next.reported = max(next.reported, offset)
                next.isReported = true
            case .run(let advance):
                (next.advance, next.waitingHolder) = (advance, nil)
                if world.machine.notification == .atEnd { next.caller = lease }
            }
        case .queue: if next.machine.queueAcknowledgment(as: lease) == .notNeeded { return nil }
        case .process:
            let reservation = try next.machine.beginProcessing(as: lease, shouldMarkDurably: true)
            guard case .granted(let shouldAcknowledge) = reservation else {
                next.waitingHolder = lease
                break
            }
            (next.shouldAcknowledge, next.waitingHolder) = (shouldAcknowledge, nil)
        case .mark:
            try world.machine.require(lease)
            guard isProcessing, isDurable || !world.shouldAcknowledge else { return nil }
            next.machine.mark()
        case .markFailed:
            try world.machine.require(lease)
            guard isProcessing, isDurable else { return nil }
            next.machine.markFailed()
        case .unmark: if next.machine.unmark(as: lease) == .done { return nil }
        case .processingFailed: next.machine.processingFailed(as: lease)
        case .endProcessing: _ = next.machine.endProcessing(as: lease)
        case .publish:
            guard !world.machine.isStaging, world.machine.activity != .publishing, isProcessing,
                case .granted(let shouldAcknowledge) = try next.machine.beginPublishing(as: lease)
            else { return nil }
            next.shouldAcknowledge = shouldAcknowledge
        case .decide:
            try world.machine.require(lease)
            // The decision creates the row if there is none, after the bytes were synchronized.
            guard isProcessing, world.machine.activity == .publishing, isDurable || !world.shouldAcknowledge else {
                return nil
            }
            next.hasRow = true
            next.recorded = max(world.recorded, world.machine.received)
            if !world.hasRow { next.machine.record(offset: world.machine.received) }
            next.machine.decide()
        case .complete, .invalidate:
            next.hasRow = true
            next.machine.record(offset: 0)
            if try next.machine.beginEnding(as: lease) == .wait { return nil }
            _ = next.machine.finish(
                as: event == .complete ? .complete(Response(status: 201)) : .invalid(reason: "no"))
        case .beginEnding:
            if world.ending != nil { return nil }
            if try next.machine.beginEnding(as: lease) == .wait {
                next.waitingHolder = lease
                break
            }
            next.waitingHolder = nil
            (next.ending, next.endsProcessing) = (lease, isProcessing)
        case .observe: next.machine.observe(lease)
        case .appendFailed:
            _ = try next.machine.beginAppending(1, as: lease)
            next.machine.appendingStopped()
            next.waitingHolder = lease
        case .release, .releaseFailed, .beginRelease:
            // A thread that completes or publishes the upload reports the result before it releases the lease.
            if lease == world.ending || lease == world.machine.epoch && isProcessing && world.machine.isDecided {
                return nil
            }
            let step = next.machine.beginRelease(of: lease)
            if event == .releaseFailed, step != .completeAsInterrupted { return nil }
            if step == .completeAsInterrupted {
                if try next.machine.beginEnding(as: lease) == .wait { return nil }
                if event == .releaseFailed {
                    next.machine.endingFailed(as: lease)
                } else {
                    _ = next.machine.finish(as: .complete(Response(status: 500)))
                }
            }
            if event == .beginRelease, step != .done {
                next.releasing = lease
            } else {
                if step != .done { next.machine.endRelease(of: lease) }
                next.leases.removeAll { $0 == lease }
            }
        }
        return next == world ? nil : next
    }

    static func next(_ world: World, _ event: OtherEvent) -> World? {
        var next = world
        switch event {
        case .arrive:
            guard world.arrived.isEmpty else { return nil }
            next.machine.enqueue(ticket)
            next.arrived = [ticket]
        case .arriveSecond:
            guard world.arrived.count == 1 else { return nil }
            next.machine.enqueue(secondTicket)
            next.arrived.append(secondTicket)
        case .leave:
            if world.work != nil { return nil }
            next.machine.leave(ticket)
        case .leaveSecond: next.machine.leave(secondTicket)
        case .claim, .claimSecond, .claimLate, .claimExclusively, .remove:
            guard let claiming = claimingTicket(world, event), claiming != ticket || world.work == nil else {
                return nil
            }
            switch next.machine.claim(claiming, isLate: event == .claimLate) {
            case .wait: break
            case .stillProcessing:
                next.reported = max(world.reported, world.machine.durable)
                next.isReported = true
            case .record(let advance): next.advance = advance
            case .load: next.work = .load
            case .settle: next.work = .settle
            case .granted where event == .remove:
                next.machine.beginRemoval()
                next.removal = .begun
            case .granted:
                guard next.machine.isUnfinished else { break }
                next.machine.takeOver(exclusive: event == .claimExclusively)
                next.leases = (next.leases + [next.machine.epoch]).suffix(2)
            }
        case .worked:
            switch world.work {
            case .load where !world.hasRow:
                // The request gets the response that the upload does not exist.
                next.machine.preparationFailed()
                next.machine.leave(ticket)
            case .load:
                next.isHeld = true
                switch world.removal {
                case .loading, .loadingEarly:
                    let row = row(offset: world.recorded, expiresAt: world.removal == .loading ? 0 : 1)
                    if next.machine.loadExpired(row, fence: 1, at: 0) == .removable {
                        next.machine.beginRemoval()
                        next.removal = world.removal == .loading ? .begun : .begunEarly
                    }
                default: _ = next.machine.load(row(offset: world.recorded), fence: 1, hasBytes: true)
                }
            case .settle:
                guard world.isHeld else { return nil }
                _ = next.machine.finish(as: .invalid(reason: "interrupted"))
            default: return nil
            }
            next.work = nil
            if [.loading, .loadingEarly].contains(next.removal) { next.removal = .none }
        case .workedLost:
            guard world.work == .load, world.removal == .none, world.hasRow, world.recorded > 0 else { return nil }
            next.isHeld = true
            // The thread that has loaded the upload now makes it invalid.
            let result = next.machine.load(row(offset: world.recorded), fence: 1, hasBytes: false)
            next.work = result == .lost ? .settle : nil
        case .workFailed:
            if world.work == nil { return nil }
            next.work = nil
            if [.loading, .loadingEarly].contains(next.removal) { next.removal = .none }
            next.machine.preparationFailed()
        case .runQueued: next.advance = next.machine.runQueuedAcknowledgment() ?? world.advance
        case .acknowledged:
            guard let advance = world.advance, world.hasCommitted || world.isHeld else { return nil }
            (next.advance, next.caller, next.hasCommitted) = (nil, nil, false)
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
            (next.advance, next.caller, next.hasCommitted) = (nil, nil, false)
            next.holdRelease?.hasFailed = true
            if event == .rowFailed {
                if !world.machine.isRecorded { next.machine.recordingFailed() }
                next.machine.acknowledgmentFailed()
            } else {
                next.machine.synchronizationFailed(
                    .stateLost, duringCallOf: world.caller, isAwaited: world.isShared)
            }
        case .recordAtStop:
            guard let advance = next.machine.beginRecording() else { return nil }
            next.advance = advance
        case .publishingFailed:
            guard let lease = world.machine.processor else { return nil }
            next.machine.publishingFailed(as: lease)
            next.shouldAcknowledge = true
        case .forget:
            // A publication without a row has failed.
            guard world.machine.activity == .publishing, !world.hasRow else { return nil }
            _ = next.machine.endWithoutRow(isTransient: false)
        case .withdrawQueued:
            next.machine.withdrawQueuedAcknowledgment()
            if next.machine != world.machine { next.holdRelease?.hasFailed = true }
        case .ended:
            guard world.ending != nil, world.isHeld else { return nil }
            next.ending = nil
            next.hasRow = true
            next.machine.record(offset: 0)
            _ = next.machine.finish(as: .complete(Response(status: 201)))
        case .endingFailed:
            guard let lease = world.ending else { return nil }
            next.ending = nil
            next.machine.endingFailed(as: lease)
        case .endRelease:
            guard let lease = world.releasing else { return nil }
            next.releasing = nil
            next.leases.removeAll { $0 == lease }
            next.machine.endRelease(of: lease)
        case .committed:
            guard let advance = world.advance, world.isHeld, !world.hasCommitted else { return nil }
            (next.hasCommitted, next.hasRow) = (true, true)
            next.recorded = max(world.recorded, advance.offset)
        case .lost:
            // The store notices it only if the upload is loaded.
            guard world.machine.isRecorded, world.hasRow, world.isHeld, world.machine.isLoaded,
                world.machine.isUnfinished
            else { return nil }
            next.isHeld = false
            next.machine.drop()
        case .otherAdvances:
            guard !world.isHeld, world.hasRow, world.recorded < 2 else { return nil }
            next.recorded += 1
        case .otherRemoves:
            guard !world.isHeld, world.hasRow else { return nil }
            (next.hasRow, next.isReported, next.reported) = (false, false, 0)
        case .endUse:
            guard world.leases.isEmpty, world.arrived.isEmpty, world.work == nil, world.removal == .none,
                world.machine.acknowledgment == .idle
            else { return nil }
            switch next.machine.endWithoutRow(isTransient: false) {
            case .refused: return nil
            case .ended: break
            case .removeRow: next.hasRow = false
            }
        case .expire, .expireEarly:
            guard world.work == nil, world.removal == .none else { return nil }
            let hasExpired = event == .expire
            switch next.machine.beginExpiry(of: hasExpired ? 0 : 1, at: 0) {
            case .busy: return nil
            case .load: (next.work, next.removal) = (.load, hasExpired ? .loading : .loadingEarly)
            case .removable:
                next.machine.beginRemoval()
                next.removal = hasExpired ? .begun : .begunEarly
            }
        case .removed:
            guard world.removal == .begun, world.isHeld || !world.hasRow,
                next.machine.continueRemoval() == .removeRow
            else { return nil }
            next.removal = .none
            (next.hasRow, next.recorded, next.isReported, next.reported) = (false, 0, false, 0)
            next.machine.forget()
        case .removalFailed:
            guard world.removal == .begun, next.machine.continueRemoval() == .removeRow else { return nil }
            next.removal = .none
            next.machine.preparationFailed()
        case .holdRelease, .holdReleaseLate:
            let now: Int64 = event == .holdRelease ? 0 : 1
            switch next.machine.beginHoldRelease(at: now, until: 1) {
            case .wait: break
            case .acknowledge(let event) where event == world.holdRelease?.event:
                next.holdRelease?.isPaused = false
                next.holdRelease?.hasQueued = false
            case .acknowledge(let event): next.holdRelease = HoldRelease(event: event)
            case .release(let event): next.isHeld = next.machine.endHoldRelease(event) == .kept && world.isHeld
            }
        case .continueHoldRelease:
            guard let holdRelease = world.holdRelease, !holdRelease.isPaused else { return nil }
            switch next.machine.continueHoldRelease(holdRelease.event, hasQueued: holdRelease.hasQueued) {
            case .wait: return nil
            case .acknowledge: next.holdRelease?.hasQueued = true
            case .release:
                next.holdRelease = nil
                next.isHeld = next.machine.endHoldRelease(holdRelease.event) == .kept && world.isHeld
            }
        case .pauseHoldRelease:
            guard let holdRelease = world.holdRelease else { return nil }
            next.holdRelease?.isPaused = true
            next.holdRelease?.hasPaused = true
            next.machine.allowTakeOver(of: holdRelease.event.epoch)
        }
        next.renumberTickets()
        return next == world ? nil : next
    }
}
