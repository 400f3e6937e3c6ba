import Glibc
import HTTPSemantics
import ResumableTransfer
import SystemCalls

/// The reason why a file is not transferred.
enum SkipReason: Sendable, Hashable {
    /// An earlier run of the same command has sent the file.
    case sentEarlier
    /// The file exists on the other side with the same content.
    case unchanged
}

/// Reports the events of one transfer at a time to a person or to a program. Any thread may call its methods, and no
/// method except ``finish(within:)`` waits for the output.
final class TransferReport: Sendable {
    /// The form of the output.
    enum Style: Sendable, Hashable {
        /// One JSON object on each line of standard output.
        case json
        /// One line on standard error that is updated.
        case terminal
        /// Lines on standard error at intervals.
        case lines
        /// Only errors, on standard error.
        case quiet
    }

    struct State {
        var identity: TransferIdentity?
        var position = TransferPosition(kind: .put)
        var reference: FilePath?
        /// The position in the last JSON line.
        var reportedPosition: TransferPosition?
        var start = 0.0
        /// The progress of the transfer, which measures the throughput; `nil` before the transfer exists.
        var progress: TransferProgress?
        var isWaiting = false
        /// The time at which the last line of the style `lines` was written.
        var lastLine = 0.0
    }

    /// Seconds between two lines if there is no terminal.
    static let lineInterval = 10.0
    /// The maximum size in bytes of the content of a response in a JSON line.
    private static let maxContent = 64 << 10

    let command: String
    let style: Style
    private let state = Monitor(State())
    let output: CommandOutput
    let errors: CommandOutput
    /// Whether messages name the file, because the command has several transfers.
    let shouldNameFile: Bool
    /// The progress of all files that the command sends, including that of this transfer; `nil` if progress is shown for
    /// each transfer.
    let group: GroupProgress?

    init(command: String, style: Style) {
        self.command = command
        self.style = style
        shouldNameFile = false
        group = nil
        output = CommandOutput(descriptor: STDOUT_FILENO) { count in
            JSONLine([("event", .text("dropped")), ("lines", .number(Int64(count)))]).text
        }
        errors = CommandOutput(descriptor: STDERR_FILENO) { count in
            "onward \(command): \(count) messages were dropped: nothing could be written to standard error"
        }
    }

    convenience init(command: String, settings: ClientSettings) {
        let isTerminal = Terminal.isTerminal(STDERR_FILENO) && getenv("TERM").map { String(cString: $0) } != "dumb"
        self.init(
            command: command,
            style: settings.isJSON ? .json : settings.isQuiet ? .quiet : isTerminal ? .terminal : .lines)
    }

    /// Creates a report with the same output, for one of several transfers of a command.
    /// - Parameter group: the progress of all transfers; `nil` if progress is shown for each of them.
    init(_ report: TransferReport, in group: GroupProgress?) {
        command = report.command
        style = report.style
        output = report.output
        errors = report.errors
        shouldNameFile = true
        self.group = group
    }

    static var now: Double { Double(SystemClock.monotonicNanoseconds()) / 1e9 }

    // MARK: One transfer

    /// Prepares the report of a transfer that is about to start.
    /// - Parameters:
    ///   - kept: the number of bytes that earlier runs have transferred.
    ///   - reference: the name or path of its state; `nil` if no state will be kept.
    func begin(_ identity: TransferIdentity, kept: Int64, total: Int64?, reference: FilePath?) {
        state.withLock { state in
            state = State()
            state.identity = identity
            state.position = TransferPosition(kind: identity.kind, moved: kept, acknowledged: kept, total: total)
            state.reference = reference
            state.start = Self.now
            state.lastLine = Self.now
        }
        group?.begin(identity.path, kept: kept)
    }

    /// Reports the throughput of `progress` from now on.
    func measure(_ progress: TransferProgress) { state.withLock { $0.progress = progress } }

    func report(_ event: TransferEvent) {
        state.withLock { state in
            state.position.update(with: event)
            switch style {
            case .json: writeForProgram(event, &state)
            case .terminal, .lines: writeForPerson(event, &state)
            case .quiet: break
            }
        }
    }

    /// Reports that the transfer is complete.
    /// - Parameters:
    ///   - content: the content of the final response to an upload.
    ///   - skipped: why this run has transferred nothing; `nil` if it has.
    func completed(
        status: Int, location: String?, size: Int64?, content: [UInt8] = [], contentCoding: String? = nil,
        isResponseLost: Bool = false, skipped: SkipReason? = nil
    ) {
        state.withLock { state in
            guard let identity = state.identity else { return }
            if let size {
                state.position.moved = size
                state.position.acknowledged = size
                state.position.total = size
            }
            group?.end(identity.path, size: state.position.moved, isUnchanged: skipped != nil)
            switch style {
            case .json:
                var line = JSONLine([("event", .text("completed"))] + state.position.members)
                line.append("status", Int64(status))
                line.append("location", location)
                if !content.isEmpty, content.count <= Self.maxContent,
                    let text = String(validating: content, as: UTF8.self)
                {
                    line.append("content", text)
                }
                if let contentCoding { line.append("contentCoding", contentCoding) }
                if skipped == .unchanged { line.append("unchanged", .truth(true)) }
                Self.appendSubject(&line, identity)
                output.append(.lines(line.text))
            case .terminal where isFolder, .lines where isFolder, .quiet: break
            case .terminal, .lines:
                let text =
                    skipped == .sentEarlier
                    ? ProgressMessages.sentEarlier(identity, status: status, location: location)
                    : ProgressMessages.completed(
                        identity, state.position, status: status, location: location, isResponseLost: isResponseLost,
                        moved: state.progress?.transferred ?? 0, seconds: Self.now - state.start)
                write(text)
            }
            if let contentCoding {
                let name = DisplayText.printable(identity.path.description)
                let coding = DisplayText.printable(contentCoding)
                write("onward \(command): \(name) is stored as the server sent it, with the content coding \(coding)")
            }
            state.identity = nil
        }
    }

    /// Reports that the transfer, or the entire command, ends without success.
    /// - Returns: the command's exit status.
    func ended(_ failure: CommandFailure, advice: String? = nil) -> ExitStatus {
        state.withLock { state in
            if let identity = state.identity { group?.end(identity.path, size: nil) }
            if style == .json {
                // Every exit status except 0 and 75 is a failure.
                let event = failure.status == .tryAgain ? "interrupted" : "failed"
                var line = JSONLine([("event", .text(event))])
                if let identity = state.identity {
                    for (name, value) in state.position.members { line.append(name, value) }
                    line.append("code", failure.code)
                    line.append("message", failure.message)
                    if let response = failure.response { line.append("status", Int64(response.rawValue)) }
                    Self.appendSubject(&line, identity)
                } else {
                    line.append("code", failure.code)
                    line.append("message", failure.message)
                }
                output.append(.lines(line.text))
            }
            let isPause = failure.code == TransferError.Code.paused.rawValue
            if !(isPause && style == .quiet) {
                let file = state.identity.map { subject($0) } ?? ""
                // A command with several files gives the advice about a pause once, at its end. A command for a folder
                // also does that after temporary failures.
                let isCommon = group != nil && isPause || isFolder && failure.status == .tryAgain
                let advice = isCommon ? nil : advice
                write("onward \(command): \(file)\(failure.message)" + (advice.map { "\n" + $0 } ?? ""))
            }
            state.identity = nil
        }
        return failure.status
    }

    /// The current position.
    var position: TransferPosition { state.withLock { $0.position } }

    // MARK: Notes and warnings

    /// Writes information for a person, except with `--json` and `--quiet`.
    func note(_ text: String) {
        guard isProgressShown else { return }
        write(text)
    }

    /// Writes that the transfer is being stopped; for several transfers once.
    func noteStop() {
        if group?.noteStop() ?? true { note("Stopping. Send the signal again to stop immediately.") }
    }

    /// Notes that the server has refused a new upload because it accepts no more at the same time.
    func noteFullServer() { group?.noteFullServer() }

    /// Writes a warning in every style.
    func warn(_ text: String) {
        let file = state.withLock { $0.identity }.map { subject($0) } ?? ""
        write("onward \(command): \(file)\(text)")
    }

    func head(_ record: TransferRecord) { write(HeadLines.of(record).joined(separator: "\n")) }

    /// Whether the progress is shown to a person, even while no bytes move.
    var isProgressShown: Bool { style == .terminal || style == .lines }

    /// Calls `body` twice a second until the task is canceled. Returns `nil` if progress is not shown.
    func everyHalfSecond(_ body: @escaping @Sendable () -> Void) -> Task<Void, Never>? {
        guard isProgressShown else { return nil }
        return Task {
            while !Task.isCancelled {
                try? await Task.sleep(for: .milliseconds(500))
                body()
            }
        }
    }

    /// Updates the progress, after some time or after a change of the window size.
    func refresh() {
        guard isProgressShown else { return }
        state.withLock { state in
            guard state.identity != nil else { return }
            showProgress(&state)
        }
    }

    func write(_ text: String) { errors.append(.lines(text)) }

    // MARK: The end

    /// Waits until everything is written.
    /// - Parameter limit: the maximum time in nanoseconds, after which the remaining output is lost; `nil` for no
    ///   limit.
    func finish(within limit: Int64?) {
        output.finish(within: limit)
        errors.finish(within: limit)
    }
}

/// The position of a transfer.
struct TransferPosition: Sendable, Hashable {
    let kind: TransferIdentity.Kind
    /// The position up to which an upload has sent bytes, or the number of bytes that a download has received.
    var moved: Int64 = 0
    /// The number of bytes of an upload that the server has acknowledged.
    var acknowledged: Int64 = 0
    /// The size in bytes; `nil` while it is unknown.
    var total: Int64?

    mutating func update(with event: TransferEvent) {
        switch event {
        case .started(let total): self.total = total ?? self.total
        case .progress(let sent, let acknowledged, let total):
            moved = sent
            self.acknowledged = acknowledged
            self.total = total ?? self.total
        case .received(let count, let total):
            moved = count
            self.total = total ?? self.total
        case .resumed(let offset):
            moved = offset
            if kind == .put { acknowledged = max(acknowledged, offset) }
        case .waiting, .informational, .interrupted, .checkpoint, .completed, .failed: break
        }
    }

    /// The number of bytes that need not be transferred again, as far as is known.
    var kept: Int64 { kind == .put ? acknowledged : moved }

    /// The counts of an event.
    var members: [(String, JSONLine.Value)] {
        let total: (String, JSONLine.Value) = ("total", self.total.map { .number($0) } ?? .null)
        return switch kind {
        case .put: [("sent", .number(moved)), ("acknowledged", .number(acknowledged)), total]
        case .get: [("received", .number(moved)), total]
        }
    }

    /// The position in messages: "42 %, 1.26 GB of 3.00 GB".
    var text: String { text(of: moved) }

    /// The part that need not be sent or received again, in messages: "42 %, 1.26 GB of 3.00 GB acknowledged".
    var keptText: String { text(of: kept) + (kind == .put ? " acknowledged" : "") }

    private func text(of count: Int64) -> String {
        guard let total else { return Amount.bytes(count) }
        return "\(Amount.share(count, of: total)) %, \(Amount.bytes(count)) of \(Amount.bytes(total))"
    }
}
