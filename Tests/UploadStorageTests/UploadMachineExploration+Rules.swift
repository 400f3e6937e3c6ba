@testable import UploadStorage

extension UploadMachineExploration {
    /// A description of the rule that a step breaks; nil if it breaks no rule.
    /// - Parameter event: nil for an event of a lease.
    static func violation(_ world: World, _ next: World, _ event: OtherEvent?, _ isStale: Bool) -> String? {
        let (last, machine) = (world.machine, next.machine)
        if isStale { return "a lease that has ended changes the state" }
        if let violation = violationOfEnd(world, next) ?? violationOfHoldRelease(world, next, event)
            ?? violationOfNotification(world, next, event) ?? violationOfQueue(world, next, event)
        {
            return violation
        }
        if machine.epoch < last.epoch { return "the epoch decreases" }
        guard machine.durable <= machine.received, machine.received <= machine.written else {
            return "durable, received and written bytes are not in order"
        }
        if machine.isUnfinished && machine.durable < next.reported { return "a reported offset decreases" }
        if machine.isUnfinished && machine.durable > next.recorded {
            return "an offset is reported that the row does not have"
        }
        if next.isReported && !next.hasRow { return "an offset is reported for an upload without a row" }
        if machine.isLoaded && machine.isRecorded != next.hasRow && machine.rowExists != .unknown && !next.hasCommitted
        {
            return "the machine does not know whether there is a row"
        }
        if machine.activity == .publishing && !machine.isRecorded && next.advance != nil {
            return "two threads create the row"
        }
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

    static func violationOfEnd(_ world: World, _ next: World) -> String? {
        let (last, machine) = (world.machine, next.machine)
        let isDurable = machine.durable >= machine.received
        if !last.isProcessingRecorded && machine.isProcessingRecorded && !isDurable {
            return "the processing of bytes that are not durable is recorded"
        }
        if !last.isDecided && machine.isDecided && last.isRecorded && !isDurable {
            return "the publication of bytes that are not durable is decided"
        }
        if let lease = world.ending, next.ending == nil, machine.isUnfinished, machine.isLoaded {
            let isProcessing = world.endsProcessing && lease == machine.epoch
            if machine.activity != (isProcessing ? .processing : .idle) {
                return "a failed end does not restore the activity before it"
            }
        }
        if next.leases.count < world.leases.count, last.isProcessingRecorded, machine.isLoaded, machine.isUnfinished,
            !machine.isProcessingRecorded
        {
            return "a target that may have run can run again after a release"
        }
        if last.activity == .loading, machine.activity == .idle, machine.epoch > last.epoch, machine.isLoaded,
            machine.isUnfinished, !machine.hasBytes, machine.durable > 0
        {
            return "missing bytes are not recorded"
        }
        if next.removal == .begunEarly { return "an upload that has not expired is removed" }
        if let lease = world.releasing, next.releasing == nil {
            if lease != last.epoch && machine.epoch != last.epoch { return "the release of a lease ends a later lease" }
            if machine.epoch == lease { return "a lease remains after its release" }
        }
        return nil
    }

    static func violationOfHoldRelease(_ world: World, _ next: World, _ event: OtherEvent?) -> String? {
        if let event = next.holdRelease?.event, event != world.holdRelease?.event, world.machine.isExclusive {
            return "a release for another store ends an exclusive lease"
        }
        let hasEnded = world.isHeld && !next.isHeld && event != .lost
        if hasEnded, event == .holdRelease { return "a release for another store ends a lease before its deadline" }
        if hasEnded, isBeingCompleted(world.machine) { return "an upload is released while a thread completes it" }
        guard let holdRelease = world.holdRelease, event != .holdReleaseLate else { return nil }
        let isCurrent = holdRelease.event.epoch == world.machine.epoch
        if hasEnded, !isCurrent { return "a release for another store ends a later lease" }
        if isCurrent, !holdRelease.hasPaused, next.leases.count > world.leases.count {
            return "a request takes the upload over during its release"
        }
        if hasEnded, !holdRelease.hasFailed, world.machine.durable < world.machine.received {
            return "the upload is released before its bytes are durable"
        }
        return nil
    }

    /// The holder of a lease that others have ended is notified once, if it has requested that. If one of its calls
    /// reports the end of the lease, it is not notified.
    static func violationOfNotification(_ world: World, _ next: World, _ event: OtherEvent?) -> String? {
        let (lease, isNotified) = (world.machine.epoch, next.machine.notification == .due)
        guard world.machine.notification == .atEnd, next.machine.epoch != lease else {
            return isNotified ? "a holder is notified although its lease has not ended" : nil
        }
        let isReported =
            switch event {
            case nil, .forget, .endRelease, .publishingFailed: true
            case .synchronizationFailed: world.caller == lease || world.isShared || world.waitingHolder == lease
            default: false
            }
        if isReported, isNotified { return "a holder is notified although its call reports the end of its lease" }
        if !isReported, !isNotified { return "the holder of a lease that others have ended is not notified" }
        return nil
    }

    /// Verifies that requests are served in the order in which they came. They do not wait for a request that only
    /// sends content: such a request is ended.
    static func violationOfQueue(_ world: World, _ next: World, _ event: OtherEvent?) -> String? {
        if event == .endUse, next.hasRow { return "the row of an upload that has ended without one remains" }
        guard let event, let ticket = claimingTicket(world, event) else { return nil }
        let last = world.machine
        var machine = last
        let (claim, isFirst) = (machine.claim(ticket, isLate: event == .claimLate), ticket == world.arrived.first)
        switch claim {
        case .granted, .load, .settle: if !isFirst { return "a later request is served first" }
        case .wait:
            if isFirst, last.activity == .idle, !last.isExclusive, !last.isLoadingNeeded, !last.isSettlingNeeded {
                return "a request waits for the end of one that only sends"
            }
        case .stillProcessing, .record: break
        }
        guard claim == .granted || claim == .stillProcessing else { return nil }
        if machine.waiting.contains(ticket) { return "a request that was served remains in the queue" }
        if claim == .granted, last.isUnfinished {
            if next.machine.isCurrent(last.epoch) { return "a newer request does not end the one that sends" }
            if next.machine.isExclusive != (event == .claimExclusively) { return "a lease is exclusive, or is not" }
        }
        return nil
    }

    /// Whether a thread loads, completes or removes the upload, or its target resource may process it.
    private static func isBeingCompleted(_ machine: UploadMachine) -> Bool {
        switch machine.activity {
        case .idle: false
        case .processing, .publishing: machine.acknowledgment != .running
        case .loading, .settling, .ending: true
        }
    }

    /// Whether the upload cannot be released now, although no work is running whose end would allow the release.
    private static func preventsHoldRelease(_ machine: UploadMachine) -> Bool {
        guard machine.isIdle, machine.isUnfinished, !machine.isExclusive, !machine.isClaimNeededForHoldRelease else {
            return false
        }
        var machine = machine
        return machine.beginHoldRelease(at: 0, until: 1) == .wait
    }

    /// Whether a release waits although there is no acknowledgment whose end it could wait for.
    private static func waitsForNothing(_ world: World) -> Bool {
        guard let holdRelease = world.holdRelease, !holdRelease.isPaused, world.machine.acknowledgment == .idle else {
            return false
        }
        var machine = world.machine
        return machine.continueHoldRelease(holdRelease.event, hasQueued: holdRelease.hasQueued) == .wait
    }

    /// Whether a waiting request does not get the upload after all pending work is done and all leases are released.
    static func isStuck(_ world: World) throws -> Bool {
        if waitsForNothing(world) { return true }
        var world = world
        if world.advance != nil { world = next(world, .acknowledged) ?? next(world, .rowFailed) ?? world }
        if world.work != nil { world = next(world, .worked) ?? next(world, .workFailed) ?? world }
        if world.ending != nil { world = next(world, .ended) ?? next(world, .endingFailed) ?? world }
        if world.removal == .begun { world = next(world, .removed) ?? next(world, .removalFailed) ?? world }
        if let lease = world.machine.processor { world.machine.publishingFailed(as: lease) }
        if world.releasing != nil { world = next(world, .endRelease) ?? world }
        for _ in 0..<3 where world.holdRelease != nil {
            world = next(world, .continueHoldRelease) ?? next(world, .pauseHoldRelease) ?? world
            world = next(world, .runQueued) ?? world
            world = next(world, .acknowledged) ?? next(world, .rowFailed) ?? world
        }
        let lease = world.machine.epoch
        if world.leases.contains(lease) {
            if world.machine.isProcessing, world.machine.isDecided {
                _ = world.machine.finish(as: .invalid(reason: "interrupted"))
            }
            world = try next(world, .release, as: lease) ?? world
        }
        if preventsHoldRelease(world.machine) { return true }
        for ticket in world.machine.waiting { world.machine.leave(ticket) }
        world.machine.enqueue(ticket)
        world.arrived = [ticket]
        for _ in 0..<3 {
            switch world.machine.claim(ticket, isLate: false) {
            case .granted: return preventsHoldRelease(world.machine)
            case .wait, .stillProcessing, .record: return true
            case .load where !world.hasRow: return false
            case .load, .settle: world.work = world.machine.activity == .loading ? .load : .settle
            }
            world = next(world, .worked) ?? world
        }
        return true
    }
}
