import Glibc
import HTTPSemantics
import SystemCalls

/// The state of a running scenario, which the connections of the server share.
final class ScenarioState: Sendable {
    private struct State {
        var record: ScenarioRecord
        var counts: [ScriptedRequest.Kind: Int] = [:]
        var run = 1
        var connections = 0
        var isOver = false
        var shouldKill = false
        /// Whether the command was killed.
        var isKilled = false
        /// Whether the wait for the killed client is over.
        var hasEnded = false
        var interruptedAt: Int64?
        /// The number of consecutive requests without content.
        var fruitless = 0
        /// The number of bytes of content in both directions.
        var moved: Int64 = 0
        var hasRepeatedRequests = false

        mutating func move(_ count: Int64, limit: Int64) {
            guard count > 0 else { return }
            fruitless = 0
            moved += count
            if moved > limit { abort() }
        }

        mutating func abort() {
            hasRepeatedRequests = true
            shouldKill = true
        }
    }

    /// The number of consecutive requests without content after which the client is killed.
    static let maxFruitless = 60
    /// The client is killed when it has sent and received more content than this multiple of the size of the file plus
    /// ``minWaste`` bytes.
    static let maxRepetitions: Int64 = 20
    /// The number of bytes that the limit adds to the multiple of the size, so that the limit is not too low for small
    /// files.
    static let minWaste: Int64 = 4 << 20

    let scenario: Scenario
    /// The content of the file that the client uploads in its first run.
    let content: [UInt8]
    private let state: Monitor<State>
    private let log: Monitor<Transcript>

    init(_ scenario: Scenario) {
        self.scenario = scenario
        content = scenario.direction == .upload ? TestContent.bytes(Int(scenario.size)) : []
        log = Monitor(Transcript())
        state = Monitor(
            State(
                record: ScenarioRecord(
                    scenario: scenario.info, direction: scenario.direction, size: scenario.size,
                    stage: Stage(size: scenario.size))))
    }

    // MARK: - Lifetime

    var isOver: Bool { state.withLock { $0.isOver } }
    var shouldKill: Bool { state.withLock { $0.shouldKill } }
    /// Whether the client was aborted because it repeats its requests without progress.
    var hasRepeatedRequests: Bool { state.withLock { $0.hasRepeatedRequests } }

    func begin(origins: [String]) { state.withLock { $0.record.stage.origins = origins } }

    func nextRun() {
        state.withLock { state in
            state.run += 1
            state.shouldKill = state.hasRepeatedRequests
            state.isKilled = false
            state.hasEnded = false
        }
    }

    func requestKill() { state.withLock { $0.shouldKill = true } }

    /// Whether the command was killed because the scenario requires it.
    var isKilled: Bool { state.withLock { $0.isKilled } }
    func kill() { state.withLock { $0.isKilled = true } }

    /// Whether the wait for the killed client is over: it has closed its connection, or the time limit has passed.
    var hasKilledClientEnded: Bool { state.withLock { $0.hasEnded } }
    func killedClientEnded() { state.withLock { $0.hasEnded = true } }

    /// Ends the scenario: the server no longer waits for the client.
    func end() { state.withLock { $0.isOver = true } }

    var record: ScenarioRecord { state.withLock { $0.record } }

    var transcript: (entries: [Transcript.Entry], omitted: Int) {
        log.withLock { ($0.entries, $0.omittedEvents) }
    }

    // MARK: - The transcript

    func newConnection() -> Int {
        state.withLock { $0.connections += 1 }
        return log.withLock { $0.newConnection() }
    }

    func note(_ text: String, on connection: Int) { log.withLock { $0.note(text, on: connection) } }

    func received(_ bytes: ArraySlice<UInt8>, on connection: Int) {
        log.withLock { $0.received(bytes, on: connection) }
    }

    func sent(_ bytes: ArraySlice<UInt8>, on connection: Int) { log.withLock { $0.sent(bytes, on: connection) } }

    // MARK: - Requests

    /// Records the head of a request and determines the reaction.
    /// - Returns: the number of the request, and the reaction.
    func receive(_ head: RequestHead, on connection: Int, origin: Int) -> (number: Int, reaction: Reaction) {
        state.withLock { state in
            let profile = Self.profile(of: head.fields)
            let isDraft = head.fields.contains(profile.completenessName)
            let method = head.method.rawValue
            let kind: ScriptedRequest.Kind
            switch scenario.direction {
            case .upload: kind = state.record.stage.uploads.kind(of: method, head.target, isDraft: isDraft)
            case .download:
                let isFile = head.target == DownloadModel.target || head.target == "/moved" + DownloadModel.target
                kind = isFile && (method == "GET" || method == "HEAD") ? .download : .stray
            }
            state.counts[kind, default: 0] += 1
            var request = ScriptedRequest(
                number: state.record.requests.count + 1, connection: connection, run: state.run, origin: origin,
                method: method, target: head.target, fields: head.fields, kind: kind, count: state.counts[kind] ?? 1,
                profile: profile, upload: state.record.stage.uploads.upload(at: head.target),
                arrivedAt: SystemClock.monotonicNanoseconds())
            if kind == .append { request.start = request.offset ?? 0 }
            var reaction: Reaction
            if scenario.direction == .upload {
                reaction = state.record.stage.uploads.reaction(to: request)
                if kind == .creation { request.upload = state.record.stage.uploads.uploads.count }
            } else {
                reaction = state.record.stage.downloads.reaction(to: request)
            }
            scenario.script(request, &state.record.stage, &reaction)
            state.record.requests.append(request)
            state.fruitless += 1
            if state.fruitless > Self.maxFruitless { state.abort() }
            return (request.number, reaction)
        }
    }

    /// Records content of a request.
    /// - Returns: the number of bytes of content received so far.
    func receiveContent(_ bytes: ArraySlice<UInt8>, of number: Int, shouldStore: Bool) -> Int64 {
        state.withLock { state in
            let now = SystemClock.monotonicNanoseconds()
            var request = state.record.requests[number - 1]
            defer { state.record.requests[number - 1] = request }
            let start = request.start + request.received
            if request.differsAt == nil, let place = difference(bytes, at: start) { request.differsAt = place }
            request.received += Int64(bytes.count)
            request.lastReadAt = now
            state.move(Int64(bytes.count), limit: limit)
            if let interruption = state.interruptedAt, state.record.recovery == nil, interruption < now {
                state.record.recovery = now - interruption
            }
            if shouldStore, let upload = request.upload {
                state.record.stage.uploads.uploads[upload - 1].offset = start + Int64(bytes.count)
                if request.differsAt != nil { state.record.stage.uploads.uploads[upload - 1].isIntact = false }
            }
            return request.received
        }
    }

    private func difference(_ bytes: ArraySlice<UInt8>, at start: Int64) -> Int64? {
        guard let first = Int(exactly: start), first + bytes.count <= content.count else { return start }
        let isSame = content.withUnsafeBytes { known in
            bytes.withUnsafeBytes { given in
                guard let known = known.baseAddress, let given = given.baseAddress else { return true }
                return memcmp(known + first, given, bytes.count) == 0
            }
        }
        if isSame { return nil }
        return start + Int64(zip(content[first...], bytes).prefix { $0 == $1 }.count)
    }

    /// Records that the content of a request is complete.
    func finish(_ number: Int, _ reaction: Reaction) {
        state.withLock { state in
            let request = state.record.requests[number - 1]
            state.record.requests[number - 1].isContentComplete = true
            guard reaction.isCompleting else { return }
            if request.kind == .plain {
                let isComplete = request.received == scenario.size && request.differsAt == nil
                if isComplete { state.record.stage.uploads.hasPlainCopy = true }
                state.record.stage.uploads.completions += 1
            } else if let upload = request.upload {
                // A client that lost the response may request it again.
                if state.record.stage.uploads.uploads[upload - 1].isComplete { return }
                state.record.stage.uploads.uploads[upload - 1].isComplete = true
                state.record.stage.uploads.completions += 1
            }
        }
    }

    /// Records that a response was sent, or that the connection is about to end without a response.
    func conclude(
        _ number: Int, status: Int?, reported: AnswerFields? = nil, discarded: Int64 = 0, sent: Int64 = 0,
        isInterruption: Bool
    ) {
        state.withLock { state in
            let now = SystemClock.monotonicNanoseconds()
            if state.record.requests[number - 1].answeredAt == nil {
                state.record.requests[number - 1].answeredAt = now
                state.record.requests[number - 1].status = status
                state.record.requests[number - 1].reportedOffset = reported?.offset
                state.record.requests[number - 1].isReportedComplete = reported.flatMap {
                    $0.isComplete(state.record.requests[number - 1].profile)
                }
            }
            state.record.requests[number - 1].discarded += discarded
            if let interruption = state.interruptedAt, state.record.recovery == nil, sent > 0 {
                state.record.recovery = now - interruption
            }
            state.record.contentSent += sent
            state.move(sent + discarded, limit: limit)
            if isInterruption, state.interruptedAt == nil { state.interruptedAt = now }
        }
    }

    func note(surplus text: String) {
        state.withLock { if $0.record.surplus.count < 20 { $0.record.surplus.append(text) } }
    }

    func note(malformed text: String) {
        state.withLock { if $0.record.malformed.count < 20 { $0.record.malformed.append(text) } }
    }

    /// Returns the offset of the upload to which a request belongs.
    func offset(of number: Int) -> Int64? {
        state.withLock { state in
            let upload = state.record.requests[number - 1].upload
            return upload.map { state.record.stage.uploads.uploads[$0 - 1].offset }
        }
    }

    /// The number of bytes of content after which the client is killed.
    private var limit: Int64 { scenario.size * Self.maxRepetitions + Self.minWaste }

    private static func profile(of fields: Fields) -> Profile {
        let values = fields.values("Upload-Draft-Interop-Version")
        guard values.count == 1, let version = Int(values[0]), Profile.versions.contains(version) else { return .rfc }
        return .interop(version)
    }
}
