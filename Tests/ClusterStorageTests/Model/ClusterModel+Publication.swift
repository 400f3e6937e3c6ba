import ClusterStorage

/// Publications. That of an upload with a row is a change of the row; these are those of a short or plain upload, which has
/// no row before.
extension ClusterModel {
    func addShort(of node: Int, _ session: Int64, _ add: Add) {
        switch nodes[node].short {
        case .received where used.publications < limits.publications:
            add(.publish(node)) { next in
                next.used.publications += 1
                let batch = next.nodes[node].session.batch
                next.nodes[node].work = Call(
                    request: .publish(session, batch: batch, tag: next.used.publications), sentAt: next.clock(node))
            }
        case .unknown(let tag):
            addCall(.confirm(node), of: node, isControl: false, add) { _ in .confirm(tag: tag) }
            if limits.isPlain { return }
            addCall(.forget(node), of: node, isControl: false, add) { next in
                .forget(session, batch: next.nodes[node].session.batch)
            }
        default: break
        }
    }

    /// Looks for the outcome of a publication whose response was lost.
    func addConfirmation(_ unconfirmed: Unconfirmed, of node: Int, _ add: Add) {
        addCall(.confirm(node), of: node, isControl: false, add) { _ in .confirmRow(tag: unconfirmed.tag) }
    }

    /// Lets a node receive the row with the outcome of a publication.
    private mutating func receiveConfirmation(_ node: Int, isMade: Bool) {
        guard let unconfirmed = nodes[node].unconfirmed else { return }
        nodes[node].unconfirmed = nil
        guard isMade else {
            failedTags.insert(unconfirmed.tag)
            return
        }
        confirmedTag = unconfirmed.tag
        if mutation != .confirmationKeepsHold {
            _ = nodes[node].session.released(uploadID, fence: unconfirmed.fence)
        }
        if nodes[node].session.lastHold(uploadID) != nil { violation = "a node counts a complete upload as held" }
    }

    /// Records that the publication was certainly not made. The client repeats its request.
    private mutating func failShort(_ node: Int, _ tag: Int) {
        failedTags.insert(tag)
        nodes[node].short = .received
    }

    /// Lets a node receive the response to a call for a short upload.
    mutating func receivePublication(_ node: Int, _ call: Call) {
        switch (call.request, call.response) {
        case (.publish(_, _, let tag), .done), (.confirm(let tag), .done):
            nodes[node].short = .succeeded
            confirmedTag = tag
        case (.publish(let session, _, let tag), let response):
            failShort(node, tag)
            if response == .sessionEnded, nodes[node].session.number == session { endSession(node) }
        case (.confirm(let tag), _): failShort(node, tag)
        case (.confirmRow, let response): receiveConfirmation(node, isMade: response == .done)
        case (.forget, .done): nodes[node].short = .forgotten
        default: break
        }
    }

    /// Verifies what must be true of the file in every state.
    mutating func verifyPublication() {
        let (row, file) = (database.row, database.file)
        if !limits.isPlain, file != (row.exists && row.isComplete ? row.tag : nil) {
            violation = "there is a file without its final response, or a final response without its file"
        }
        if let confirmedTag, file != confirmedTag {
            violation = "the published file has another entity tag than the final response"
        }
        if let file, failedTags.contains(file) { violation = "a publication that has failed has an effect" }
        if wasCanceled && (row.exists || file != nil) { violation = "a canceled upload exists" }
    }
}
