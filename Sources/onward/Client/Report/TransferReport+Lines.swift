import HTTPSemantics
import ResumableTransfer

// The forms of an event: a line for a program, or progress and messages for a person.
extension TransferReport {
    // MARK: For programs

    func writeForProgram(_ event: TransferEvent, _ state: inout State) {
        guard let identity = state.identity else { return }
        var line: JSONLine
        let position = state.position
        func begin(_ name: String) -> JSONLine {
            var line = JSONLine([("event", .text(name))] + position.members)
            Self.appendSubject(&line, identity)
            return line
        }
        let reported = state.reportedPosition
        var isPosition = false
        switch event {
        case .started:
            line = begin("started")
            line.append("state", path: state.reference)
        case .progress, .received:
            guard reported != position else { return }
            line = begin("progress")
            isPosition = true
        case .interrupted(let error, let retryIn):
            line = begin("interrupted")
            line.append("code", error.code.rawValue)
            line.append("message", error.message)
            line.append("retryIn", .seconds(retryIn.inSeconds))
        case .resumed(let offset):
            line = begin("resumed")
            line.append("at", offset)
        case .waiting, .informational, .checkpoint, .completed, .failed: return
        }
        state.reportedPosition = position
        output.append(isPosition ? .position(line.text) : .lines(line.text))
    }

    static func appendSubject(_ line: inout JSONLine, _ identity: TransferIdentity) {
        line.append("file", path: identity.path)
        line.append("url", TransferURL.shown(identity.url))
    }

    // MARK: For people

    func writeForPerson(_ event: TransferEvent, _ state: inout State) {
        guard let identity = state.identity else { return }
        switch event {
        case .started:
            if style == .lines, !isFolder { write(ProgressMessages.begun(identity, total: state.position.total)) }
        case .progress, .received:
            state.isWaiting = false
            showProgress(&state)
        case .interrupted(let error, let retryIn):
            state.isWaiting = true
            write(subject(identity) + ProgressMessages.interrupted(error, retryIn: retryIn))
        case .resumed:
            state.isWaiting = false
            // If nothing was kept, nothing is resumed.
            if state.position.kept > 0 { write(subject(identity) + ProgressMessages.resumed(at: state.position)) }
        case .waiting, .informational, .checkpoint, .completed, .failed: break
        }
    }

    /// The beginning of a message about one of several files, or about the folder that is transferred, which is on the
    /// server if files are received.
    func subject(_ identity: TransferIdentity) -> String {
        guard shouldNameFile else { return "" }
        let name = group?.folder.flatMap { identity.path.relative(to: $0) } ?? identity.fileName
        if name.isEmpty, identity.kind == .get { return TransferURL.shown(identity.url) + ": " }
        return DisplayText.printable((name.isEmpty ? identity.path : name).description) + ": "
    }

    /// Whether the transfer is one of a folder.
    var isFolder: Bool { group?.folder != nil }

    /// Updates the progress of all transfers.
    func showGroup() {
        guard let group else { return }
        let now = Self.now
        if style == .terminal { errors.append(.progress(group.line(now: now))) }
        if style == .lines, group.isLineDue(now: now, interval: Self.lineInterval) {
            errors.append(.position(group.line(now: now).plainText))
        }
    }

    func showProgress(_ state: inout State) {
        guard let identity = state.identity else { return }
        let now = Self.now
        if let group {
            group.update(identity.path, moved: state.position.moved)
            return showGroup()
        }
        let isSent = identity.kind == .put && state.position.moved == state.position.total
        let line = ProgressLine(
            name: DisplayText.printable(identity.fileName.description), done: state.position.moved,
            total: state.position.total,
            rate: state.progress?.throughput.map { Double($0) },
            note: state.isWaiting ? "waiting" : isSent ? "waiting for the response" : nil)
        switch style {
        case .terminal: errors.append(.progress(line))
        case .lines:
            guard now - state.lastLine >= Self.lineInterval else { return }
            state.lastLine = now
            errors.append(.position(line.plainText))
        case .json, .quiet: break
        }
    }

    /// Writes complete lines, above the line that changes.
}
