import ClusterStorage

/// Publications: of an upload with a row, which is decided first, and of a short upload without a row.
extension ClusterModel {
    /// The next step of an upload whose publication is decided.
    func addPublication(of node: Int, _ memory: Memory, _ session: Int64, _ add: Add) {
        if memory.tag != nil {
            add(.complete(node)) { next in
                next.send(
                    node, Change(from: 0, pieces: [], content: memory.content, effect: .complete(tag: memory.tag)),
                    memory)
            }
        } else if !memory.hasLookedUp {
            addCall(.lookUp(node), of: node, isControl: false, add) { _ in .lookUp }
        } else if used.publications < limits.publications {
            add(.publish(node)) { $0.sendPublication(node, fence: memory.fence, session) }
        }
    }

    func addShort(of node: Int, _ session: Int64, _ add: Add) {
        switch nodes[node].short {
        case .received where used.publications < limits.publications:
            add(.publish(node)) { $0.sendPublication(node, fence: nil, session) }
        case .published(let tag):
            add(.insert(node)) { next in
                let batch = next.nodes[node].session.batch
                next.nodes[node].work = Call(
                    request: .insert(session, batch: batch, tag: tag), sentAt: next.clock(node))
            }
        default: break
        }
    }

    private mutating func sendPublication(_ node: Int, fence: Int64?, _ session: Int64) {
        used.publications += 1
        nodes[node].work = Call(
            request: .publish(session, batch: nodes[node].session.batch, fence: fence, tag: used.publications),
            sentAt: clock(node))
    }

    /// The client of a short upload gets 503 although its file may be published.
    mutating func failShort(_ node: Int) {
        nodes[node].short = .failed
        nodes[node].withdraws = mutation != .unknownPublicationStays
    }

    /// A node receives the response to a call for a publication.
    mutating func receivePublication(_ node: Int, _ call: Call) {
        switch (call.request, call.response) {
        case (.lookUp, .name(let tag)):
            nodes[node].memory?.tag = tag
            nodes[node].memory?.hasLookedUp = true
        case (.publish(_, _, nil, let tag), .done): nodes[node].short = .published(tag: tag)
        case (.publish(_, _, nil, _), .sessionEnded): nodes[node].short = .failed
        case (.publish(_, _, .some, let tag), .done): nodes[node].memory?.tag = tag
        case (.publish(_, _, .some, _), _): nodes[node].memory = nil
        case (.insert(_, _, let tag), .done):
            nodes[node].short = .succeeded
            shortTag = tag
        case (.insert, .sessionEnded): failShort(node)
        case (.withdraw, .done): nodes[node].withdraws = false
        default: break
        }
    }

    /// Verifies what must be true of the file in every state.
    mutating func verifyPublication() {
        let (row, file) = (database.row, database.file)
        let expected = shortTag ?? (row.exists && row.isComplete ? row.tag : nil)
        if let expected, file?.tag != expected || file?.hasFields != true {
            violation = "the published file has lost its fields, or has another entity tag than the final response"
        }
        if wasCanceled && (row.exists || file != nil) { violation = "a canceled upload exists" }
        for node in nodes where node.short == .failed && node.session.unsettled.isEmpty && !node.withdraws {
            if file != nil && !row.exists { violation = "a file is published although its client has got an error" }
        }
    }
}
