import ClusterStorage

extension ClusterModel {
    enum Step: Hashable {
        case tick
        /// The clock of the database is set, by this number of ticks.
        case setClock(Int64)
        /// A call takes effect and is answered.
        case takeEffect(Int, isControl: Bool)
        /// A call takes effect; its response is slow.
        case takeEffectOnly(Int, isControl: Bool)
        /// A call begins, and has not taken effect yet.
        case slowRequest(Int, isControl: Bool)
        /// A call begins and takes effect; its response is slow.
        case slowResponse(Int, isControl: Bool)
        case answer(Int, isControl: Bool)
        /// The sender stops waiting: the call or its response is lost or late.
        case lose(Int, isControl: Bool)
        case takeEffectLate(Request)
        case crash(Int)
        case notify(Notification)
        case write(Int), complete(Int), acquire(Int), resolve(Int)
        case publish(Int), confirm(Int), forget(Int), cancel(Int), process(Int), discard(Int)
        case open(Int), renew(Int), end(Int), release(Int)
        /// A use ends; its hold is released in another step, so that a new use can begin before.
        case endUse(Int), releaseUse(Int)
        /// A request finds that the session may have ended, and forgets the upload while its bytes are being stored.
        case drop(Int)
        case list, query, deleteOrphans, removeSessions, claimGarbage, deleteGarbage
    }

    /// All steps that are possible, with the states after them.
    func successors() -> [(Step, ClusterModel)] {
        var result: [(Step, ClusterModel)] = []
        func add(_ step: Step, _ body: (inout ClusterModel) -> Void) {
            var next = self
            body(&next)
            next.verify()
            result.append((step, next))
        }
        if time < limits.time { add(.tick) { $0.time += 1 } }
        if used.clockSteps < limits.clockSteps {
            for difference: Int64 in [-2, 2] {
                add(.setClock(difference)) { next in
                    next.used.clockSteps += 1
                    next.clockDifference += difference
                }
            }
        }
        for node in 0..<2 { addCalls(of: node, add) }
        for node in 0..<2 { addWork(of: node, add) }
        for node in 0..<2 { addEndings(of: node, add) }
        for node in 0..<2 { addSession(of: node, add) }
        for (index, request) in late.enumerated() {
            add(.takeEffectLate(request)) { next in
                next.late.remove(at: index)
                next.take(request)
            }
        }
        for notification in notifications {
            add(.notify(notification)) { next in
                next.notifications.remove(notification)
                for node in 0..<2 where next.nodes[node].session.number == notification.receiver {
                    next.receiveRequest(node, from: notification.requester)
                }
            }
        }
        addCollector(add)
        return result
    }

    typealias Add = (Step, (inout ClusterModel) -> Void) -> Void

    /// Carries out a call for which no caller waits.
    private mutating func take(_ request: Request) { _ = apply(request) }

    // MARK: Calls

    private func addCalls(of node: Int, _ add: Add) {
        for isControl in [false, true] {
            guard let call = isControl ? nodes[node].control : nodes[node].work else { continue }
            if call.response == nil {
                add(.takeEffect(node, isControl: isControl)) { $0.finishCall(of: node, isControl) }
                if used.slowCalls < limits.slowCalls {
                    add(.takeEffectOnly(node, isControl: isControl)) { next in
                        next.used.slowCalls += 1
                        next.takeEffect(node, isControl)
                    }
                }
            } else {
                add(.answer(node, isControl: isControl)) { $0.finishCall(of: node, isControl) }
            }
            if used.faults < limits.faults {
                add(.lose(node, isControl: isControl)) { next in
                    next.used.faults += 1
                    next.set(node, isControl, nil)
                    if call.response == nil { next.late.append(call.request) }
                    next.lost(node, call.request)
                }
            }
        }
        if used.faults < limits.faults {
            add(.crash(node)) { next in
                next.used.faults += 1
                for call in [next.nodes[node].work, next.nodes[node].control] {
                    if let call, call.response == nil { next.late.append(call.request) }
                }
                let process = next.nodes[node].process
                next.nodes[node] = Node()
                next.nodes[node].process = process + 2
                next.nodes[node].session = NodeSession(times: Self.times(next.mutation))
            }
        }
    }

    private mutating func set(_ node: Int, _ isControl: Bool, _ call: Call?) {
        if isControl { nodes[node].control = call } else { nodes[node].work = call }
    }

    /// Applies the call of a node, unless it was applied before, and delivers the response.
    private mutating func finishCall(of node: Int, _ isControl: Bool) {
        takeEffect(node, isControl)
        guard let call = isControl ? nodes[node].control : nodes[node].work else { return }
        set(node, isControl, nil)
        receive(node, call)
    }

    /// Adds a step that makes a call, and the same step with a slow call.
    func addCall(
        _ step: Step, of node: Int, isControl: Bool, _ add: Add,
        _ prepare: @escaping (inout ClusterModel) -> Request
    ) {
        func begin(_ next: inout ClusterModel) {
            let request = prepare(&next)
            next.set(node, isControl, Call(request: request, sentAt: next.clock(node)))
        }
        add(step) { next in
            begin(&next)
            next.finishCall(of: node, isControl)
        }
        guard used.slowCalls < limits.slowCalls else { return }
        add(.slowRequest(node, isControl: isControl)) { next in
            next.used.slowCalls += 1
            begin(&next)
        }
        add(.slowResponse(node, isControl: isControl)) { next in
            next.used.slowCalls += 1
            begin(&next)
            next.takeEffect(node, isControl)
        }
    }

    /// Applies the call of a node. The node does not get the response yet.
    private mutating func takeEffect(_ node: Int, _ isControl: Bool) {
        guard var call = isControl ? nodes[node].control : nodes[node].work, call.response == nil else { return }
        call.response = apply(call.request)
        set(node, isControl, call)
    }

    /// Lets a node receive the response to a call.
    private mutating func receive(_ node: Int, _ call: Call) {
        let now = clock(node)
        switch call.request {
        case .change(_, _, _, let change) where call.response != .done: keepUnneeded(change.pieces.map(\.key), node)
        case .discard(_, _, let keys) where call.response != .done: keepUnneeded(Array(keys), node)
        default: break
        }
        switch (call.request, call.response) {
        case (.put(_, _, let fence, var change), _):
            // The store may have ended its use meanwhile. Then the pieces are forgotten, and the object is an orphan, but the
            // change is sent as long as the node counts the upload as held.
            if nodes[node].memory == nil { change.pieces = [] }
            if nodes[node].session.lastHold(uploadID) != nil { send(node, change, fence: fence) }
        case (.change(_, _, _, let change), .done):
            if change.effect == .process { targetCalls += 1 }
            if change.effect == .remove { wasCanceled = true } else { report(change.content, isNew: false) }
            switch change.effect {
            case .remove, .complete:
                nodes[node].memory = nil
                nodes[node].session.removeHold(uploadID)
            case .process:
                guard let fence = nodes[node].memory?.fence else { return }
                nodes[node].memory?.isProcessing = true
                nodes[node].session.set(isProcessing: true, uploadID, fence: fence)
            case .advance:
                guard var memory = nodes[node].memory else { return }
                memory.pieces = memory.pieces.filter { $0.start < change.from } + change.pieces
                memory.content = change.content
                nodes[node].memory = memory
            }
        case (.change(let session, _, _, _), .sessionEnded), (.discard(let session, _, _), .sessionEnded):
            if nodes[node].session.number == session { endSession(node) }
        case (.change(let session, _, _, _), .batchEnded), (.forget(let session, _), .batchEnded),
            (.publish(let session, _, _), .batchEnded), (.discard(let session, _, _), .batchEnded):
            // The call is repeated with another number.
            nodes[node].session.outcomeBecameUnknown(in: session)
            nodes[node].memory = nil
        case (.change, _): nodes[node].memory = nil
        case (.acquire(let session, _), let response):
            nodes[node].session.endAcquiring(uploadID)
            switch response {
            case .acquired(let memory) where nodes[node].session.number == session:
                nodes[node].session.acquired(uploadID, Self.hold(memory.fence), by: session)
                nodes[node].memory = memory
            case .batchEnded: nodes[node].session.outcomeBecameUnknown(in: session)
            case .finished(let content):
                nodes[node].session.removeHold(uploadID)
                report(content, isNew: false)
            case .sessionEnded where nodes[node].session.number == session: endSession(node)
            default: break
            }
        case (.resolve(let session), .number(let batch)): nodes[node].session.resolved(session, nextBatch: batch)
        case (.resolve(let session), _):
            nodes[node].session.resolved(session, nextBatch: nil)
            if nodes[node].session.number == session { endSession(node) }
        case (.open, .opened(let session, let isAdopted)):
            let sentAt = mutation == .lifetimeFromResponse ? now : call.sentAt
            let lost = nodes[node].session.opened(session, sentAt: sentAt, adopting: isAdopted ? [uploadID] : [])
            if !lost.isEmpty { (nodes[node].memory, nodes[node].ending) = (nil, nil) }
        case (.renew(let session), .done):
            guard nodes[node].session.number == session else { return }
            nodes[node].session.renewed(sentAt: mutation == .lifetimeFromResponse ? now : call.sentAt)
        case (.renew(let session), _): if nodes[node].session.number == session { endSession(node) }
        case (.fence(let session, let requesters), .number(let fence)):
            guard nodes[node].session.isUnknown(uploadID), nodes[node].session.number == session else { return }
            nodes[node].control = Call(
                request: .release(session, fence: fence, requesters: requesters), sentAt: now)
        default: receivePublication(node, call)
        }
    }

    /// Ends a call without a response: the node does not know whether the call was applied.
    private mutating func lost(_ node: Int, _ request: Request) {
        switch request {
        case .put: nodes[node].memory = nil
        case .change(let session, _, let fence, let change):
            outcomeBecameUnknown(node, in: session)
            nodes[node].memory = nil
            keepUnneeded(change.pieces.map(\.key), node)
            if case .complete(let tag?) = change.effect {
                nodes[node].unconfirmed = Unconfirmed(tag: tag, fence: fence)
            }
            if mutation == .deletionAfterUnknownOutcome { for piece in change.pieces { take(.delete(piece.key)) } }
        case .acquire(let session, _):
            nodes[node].session.endAcquiring(uploadID)
            outcomeBecameUnknown(node, in: session)
        case .publish(let session, _, let tag):
            outcomeBecameUnknown(node, in: session)
            nodes[node].short = .unknown(tag: tag)
        case .forget(let session, _): outcomeBecameUnknown(node, in: session)
        case .discard(let session, _, let keys):
            outcomeBecameUnknown(node, in: session)
            keepUnneeded(Array(keys), node)
        default: break
        }
    }

    private mutating func keepUnneeded(_ keys: [Key], _ node: Int) {
        if limits.discards > 0 { nodes[node].unneeded.formUnion(keys) }
    }

    private mutating func outcomeBecameUnknown(_ node: Int, in session: Int64) {
        let current = nodes[node].session.number ?? session
        nodes[node].session.outcomeBecameUnknown(
            in: mutation == .unknownOutcomeOfCurrentSession ? current : session)
    }

    mutating func endSession(_ node: Int) {
        if mutation == .receivingIsKept, let fence = nodes[node].memory?.fence {
            nodes[node].session.set(isProcessing: true, uploadID, fence: fence)
        }
        _ = nodes[node].session.ended()
        nodes[node].releases = []
        if nodes[node].session.lastHold(uploadID) == nil { (nodes[node].memory, nodes[node].ending) = (nil, nil) }
    }

    // MARK: The upload

    /// Whether a node can answer from memory.
    func usesMemory(_ node: Int) -> Bool {
        let (session, memory) = (nodes[node].session, nodes[node].memory)
        let hold = mutation == .readsIgnoreEnd ? session.lastHold(uploadID) : session.hold(uploadID, at: clock(node))
        return memory != nil && hold?.fence == memory?.fence
    }

    private func addWork(of node: Int, _ add: Add) {
        let state = nodes[node]
        guard let session = state.session.number else { return }
        if usesMemory(node), let memory = state.memory {
            guard state.work == nil else { return }
            if state.session.unresolved.isEmpty {
                addChange(.complete(node), \.completions, .complete(tag: nil), of: node, memory, add)
                if memory.isProcessing { return }
                if used.writes < limits.writes { addWrite(of: node, memory, session, add) }
                addChange(.process(node), \.processings, .process, of: node, memory, add)
                addChange(.cancel(node), \.cancellations, .remove, of: node, memory, add)
                addChange(
                    .publish(node), \.publications, .complete(tag: used.publications + 1), of: node, memory, add)
                return
            }
        }
        guard state.work == nil else { return }
        let canDiscard = state.session.unresolved.isEmpty || mutation == .garbageBeforeResolution
        if used.discards < limits.discards, !state.unneeded.isEmpty, canDiscard {
            addCall(.discard(node), of: node, isControl: false, add) { next in
                next.used.discards += 1
                next.nodes[node].unneeded = []
                return .discard(session, batch: next.nodes[node].session.batch, state.unneeded)
            }
        }
        if mutation == .confirmationBeforeResolution, case .unknown = state.short {
            addShort(of: node, session, add)
        } else if mutation == .confirmationBeforeResolution, let unconfirmed = state.unconfirmed {
            addConfirmation(unconfirmed, of: node, add)
        } else if let unresolved = state.session.unresolved.min() {
            addCall(.resolve(node), of: node, isControl: false, add) { _ in .resolve(unresolved) }
        } else if let unconfirmed = state.unconfirmed {
            addConfirmation(unconfirmed, of: node, add)
        } else if state.short != nil {
            addShort(of: node, session, add)
        } else if !usesMemory(node), database.row.exists, database.row.fence <= limits.takeOvers {
            addCall(.acquire(node), of: node, isControl: false, add) { next in
                next.nodes[node].memory = nil
                next.nodes[node].session.beginAcquiring(uploadID)
                return .acquire(session, batch: next.nodes[node].session.batch)
            }
        }
    }

    /// Changes the row without new bytes.
    private func addChange(
        _ step: Step, _ count: WritableKeyPath<Limits, Int>, _ effect: Change.Effect, of node: Int, _ memory: Memory,
        _ add: Add
    ) {
        guard used[keyPath: count] < limits[keyPath: count] else { return }
        add(step) { next in
            next.used[keyPath: count] += 1
            next.send(node, Change(from: 0, pieces: [], content: memory.content, effect: effect), fence: memory.fence)
        }
    }

    /// Adds the steps in which the node ends its use of the upload.
    private func addEndings(of node: Int, _ add: Add) {
        if let memory = nodes[node].memory, used.ends < limits.ends, nodes[node].work == nil, usesMemory(node) {
            add(.endUse(node)) { next in
                next.used.ends += 1
                (next.nodes[node].memory, next.nodes[node].ending) = (nil, memory.fence)
            }
        }
        if case .put? = nodes[node].work?.request, nodes[node].memory != nil, !usesMemory(node) {
            add(.drop(node)) { $0.nodes[node].memory = nil }
        }
        if let fence = nodes[node].ending {
            add(.releaseUse(node)) { next in
                next.nodes[node].ending = nil
                if let release = next.nodes[node].session.released(uploadID, fence: fence) {
                    next.nodes[node].releases.append(release)
                }
            }
        }
    }

    /// Stores an object with a new unit, and with those of the last piece if it is not full.
    private func addWrite(of node: Int, _ memory: Memory, _ session: Int64, _ add: Add) {
        let key = Key(session: session, number: nodes[node].objectCount + 1)
        let unit = UInt8(used.writes * 2 + node)
        let tail = memory.pieces.last.flatMap { $0.size < 2 ? $0 : nil }
        let from = tail?.start ?? memory.content.count
        let bytes = memory.content[from...] + [unit]
        let change = Change(
            from: from, pieces: [Piece(start: from, size: bytes.count, key: key)], content: memory.content + [unit])
        let request = Request.put(key, Array(bytes), fence: memory.fence, change)
        func count(_ next: inout ClusterModel) {
            next.used.writes += 1
            next.nodes[node].objectCount += 1
        }
        if mutation == .rowBeforeBytes {
            add(.write(node)) { next in
                count(&next)
                next.late.append(request)
                next.send(node, change, fence: memory.fence)
            }
        } else {
            addCall(.write(node), of: node, isControl: false, add) { next in
                count(&next)
                return request
            }
        }
    }

    mutating func send(_ node: Int, _ change: Change, fence: Int64) {
        guard let session = nodes[node].session.number else { return }
        nodes[node].work = Call(
            request: .change(session, batch: nodes[node].session.batch, fence: fence, change),
            sentAt: clock(node))
    }

    private mutating func receiveRequest(_ node: Int, from requester: Int64) {
        switch nodes[node].session.requested(uploadID, by: requester) {
        case .none: break
        case .release(let release):
            if !nodes[node].releases.contains(release) { nodes[node].releases.append(release) }
        case .endUse:
            if nodes[node].memory?.isProcessing ?? false { return }
            let fence = nodes[node].session.lastHold(uploadID)?.fence ?? 0
            if mutation == .releaseKeepsHold {
                nodes[node].releases = [NodeSession.Release(id: uploadID, fence: fence, requesters: [requester])]
                return
            }
            (nodes[node].memory, nodes[node].ending) = (nil, fence)
        }
    }

    // MARK: Sessions

    private func addSession(of node: Int, _ add: Add) {
        let state = nodes[node]
        guard state.control == nil else { return }
        guard let session = state.session.number else {
            if database.lastSession < limits.sessions {
                addCall(.open(node), of: node, isControl: true, add) { next in
                    next.nodes[node].openings += 1
                    let keptFence = next.nodes[node].session.fences[uploadID]
                    return .open(
                        process: next.nodes[node].process, number: next.nodes[node].openings, keptFence: keptFence)
                }
            }
            return
        }
        if used.renewals < limits.renewals {
            addCall(.renew(node), of: node, isControl: true, add) { next in
                next.used.renewals += 1
                return .renew(session)
            }
        }
        if !state.session.isAlive(at: clock(node)) {
            add(.end(node)) { $0.endSession(node) }
        }
        if let release = state.releases.first {
            addCall(.release(node), of: node, isControl: true, add) { next in
                next.nodes[node].releases.removeFirst()
                return release.fence.map { .release(session, fence: $0, requesters: release.requesters) }
                    ?? .fence(session, requesters: release.requesters)
            }
        }
    }

    // MARK: The collector

    private func addCollector(_ add: Add) {
        if limits.collections > 0, database.sessions.values.contains(where: { !isAlive($0) }) {
            add(.removeSessions) { next in
                next.database.sessions = next.database.sessions.filter { isAlive($0.value) }
            }
        }
        if !database.garbage.isEmpty && collector.garbage.isEmpty {
            add(.claimGarbage) { $0.collector.garbage = $0.database.garbage.sorted() }
        }
        if !collector.garbage.isEmpty {
            add(.deleteGarbage) { next in
                for key in next.collector.garbage { next.take(.delete(key)) }
                next.database.garbage.subtract(next.collector.garbage)
                next.collector.garbage = []
            }
        }
        if let orphans = collector.orphans {
            add(.deleteOrphans) { next in
                for key in orphans { next.take(.delete(key)) }
                next.collector = Collector(garbage: next.collector.garbage)
            }
        } else if let listed = collector.listed {
            add(.query) { next in
                next.collector.orphans = listed.filter { key in
                    let isAlive = database.sessions[key.session] != nil && mutation != .collectorIgnoresSessions
                    let isNamed =
                        database.pieces.contains { $0.key == key } && mutation != .collectorIgnoresNames
                    return !isAlive && !isNamed && !database.garbage.contains(key)
                }
            }
        } else if used.collections < limits.collections, !objects.isEmpty {
            add(.list) { next in
                next.used.collections += 1
                next.collector.listed = next.objects.keys.sorted()
            }
        }
    }
}
