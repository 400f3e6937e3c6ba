import HTTPSemantics

/// The client's side of one upload, as a value: it says what to send, and is told what came of it.
///
/// It does no input or output and knows no time but what it is told. The order of calls is: ``next(now:)``, and for a
/// request any number of ``interim(_:now:)``, then one of ``responded(_:sent:sourceEnded:problem:now:)`` and
/// ``interrupted(_:sent:sourceEnded:)``, then ``next(now:)`` again. Never is there more than one request at a time.
package struct ClientUpload: Sendable {
    /// What remains for another run; `nil` while, or once, there is nothing to resume.
    package internal(set) var resumption: UploadResumption?
    /// The highest offset that the server has told, in bytes.
    package internal(set) var acknowledged: Int64 = 0

    enum Phase: Sendable {
        case create
        /// At `acknowledged`.
        case append
        case retrieve
        /// Ask for the stored final response; the answer to a retrieval said that there is one.
        case replay(UploadResponseHead)
        /// Ask for the target's limits, then create or retrieve.
        case discover
        /// Delete the upload resource, then fail.
        case cancel(UploadFailure)
        case sending(ClientRequest)
        case finished(UploadOutcome)
        case failed(UploadFailure)
    }

    /// What follows once the request that is being ended has ended.
    enum AbortPlan: Sendable {
        case abort(UploadFailure)
        /// The content was more than the server takes at once.
        case sendInParts
    }

    var intent: UploadIntent
    let retry: RetryPolicy
    let random: @Sendable () -> Double

    var phase: Phase
    var pendingWait: (duration: Duration, reason: UploadInterruption)?
    var abort: AbortPlan?
    /// What a replay falls back to, while one is being sent.
    var completed: UploadResponseHead?
    /// What a cancellation leads to, while one is being sent.
    var failure: UploadFailure?
    /// Further tries since there was progress.
    var attempts = 0

    var limits = UploadLimits()
    /// Bytes at once that the server has been seen not to refuse, or half of what it refused.
    var learnedMax: Int64?
    /// Whether the target was asked for its limits.
    var hasDiscovered = false
    /// What it answered of resumable uploads; `nil` if it was not asked, or gave no answer.
    package internal(set) var supportsResumption: Bool?

    /// Where redirections of the target and of the upload resource led.
    var target: ClientRequest.Resource = .target
    var temporaryURI: String?
    var redirections = 0
    var isTargetForeign = false
    var isUploadForeign = false
    /// Whether the upload resource was made, or told, in this run.
    var isOwnCreation = true
    /// Whether a retrieval has just shown that the server knows the upload.
    var isKnownToExist = false

    /// A new upload.
    /// - Parameter random: in 0..<1, for the waits between tries.
    package init(_ intent: UploadIntent, retry: RetryPolicy, random: @escaping @Sendable () -> Double) {
        self.intent = intent
        self.retry = retry
        self.random = random
        phase = .create
        guard intent.style == .automatic else { return }
        guard let length = intent.length, length > CreationStyle.maxSizeWithoutDiscovery else {
            self.intent.style = .optimistic
            return
        }
        hasDiscovered = true
        phase = .discover
    }

    /// The rest of an upload. Its first request asks for the offset.
    /// - Parameter intent: of which the version gives way to that of `resuming`.
    package init(
        resuming: UploadResumption, intent: UploadIntent, retry: RetryPolicy, random: @escaping @Sendable () -> Double
    ) {
        self.init(intent, retry: retry, random: random)
        self.intent.dialect = resuming.dialect
        self.intent.length = intent.length ?? resuming.length
        resumption = resuming
        acknowledged = resuming.acknowledged
        limits = resuming.limits
        isOwnCreation = false
        phase = .retrieve
    }

    /// What to do now.
    /// - Parameter now: seconds since 1970.
    package mutating func next(now: Int64) -> UploadStep {
        if let wait = pendingWait {
            pendingWait = nil
            return .wait(wait.duration, wait.reason)
        }
        checkExpiry(now: now)
        isKnownToExist = false
        switch phase {
        case .finished(let outcome): return .finished(outcome)
        case .failed(let failure): return .failed(failure)
        case .sending(let request): return .send(request)
        case .create: return send(creation())
        case .append: return send(append())
        case .retrieve: return send(retrieval())
        case .discover: return send(discovery())
        case .replay(let head):
            completed = head
            return send(completion())
        case .cancel(let failure):
            guard let resumption else {
                phase = .failed(failure)
                return .failed(failure)
            }
            self.failure = failure
            return send(cancellation(of: resumption.uri))
        }
    }

    private mutating func send(_ request: ClientRequest) -> UploadStep {
        phase = .sending(request)
        return .send(request)
    }

    /// The source cannot give the bytes at `offset`: the upload is deleted, for it can never be completed (draft
    /// section 4.3.1).
    package mutating func sourceFailed(at offset: Int64) {
        abort(.sourceUnavailable(at: offset))
    }

    /// The upload shall be deleted.
    package mutating func cancel() {
        abort(.cancelled)
    }

    // MARK: Transitions

    /// Deletes what the server may have, and then fails.
    mutating func abort(_ failure: UploadFailure) {
        pendingWait = nil
        abort = nil
        switch phase {
        case .finished, .failed: return
        default: phase = .cancel(failure)
        }
    }

    /// Fails for good; nothing remains to be resumed.
    mutating func fail(_ failure: UploadFailure) {
        resumption = nil
        phase = .failed(failure)
    }

    /// Ends this run; another one can go on if there is an upload resource.
    mutating func stop(_ failure: UploadFailure) {
        phase = .failed(failure)
    }

    mutating func finish(_ head: UploadResponseHead, isResponseLost: Bool = false) {
        if head.status.isSuccessful, let length = intent.length { record(offset: length) }
        phase = .finished(UploadOutcome(response: head, isResponseLost: isResponseLost))
    }

    /// Another try, after a wait, unless there were too many.
    /// - Parameter duration: as the server asks; `nil`: as the policy says.
    mutating func tryAgain(_ phase: Phase, after duration: Duration? = nil, because reason: UploadInterruption) {
        attempts += 1
        guard attempts <= retry.triesWithoutProgress else { return stop(.exhausted(lastReason: reason)) }
        self.phase = phase
        let wait = retry.delay(before: attempts, random: random(), isRefused: reason.isRefusal)
        pendingWait = (duration ?? wait, reason)
    }

    /// Takes an offset that the server told; it never is smaller than one before.
    mutating func record(offset: Int64) {
        guard offset > acknowledged else { return }
        acknowledged = offset
        resumption?.acknowledged = offset
        attempts = 0
    }

    /// Whether an offset that the server told can be gone on from; otherwise the upload is given up.
    mutating func accepts(offset: Int64) -> Bool {
        if let problem = problem(with: offset) {
            abort(problem)
            return false
        }
        record(offset: offset)
        return true
    }

    func problem(with offset: Int64) -> UploadFailure? {
        if offset < acknowledged { return .offsetLost(acknowledged: acknowledged, reported: offset) }
        if let length = intent.length, offset > length { return .offsetImpossible(offset) }
        return nil
    }

    /// Takes the limits that a response tells.
    mutating func record(limitsOf fields: Fields, now: Int64) {
        guard let reported = UploadLimits(parsing: fields, dialect: intent.dialect) else { return }
        limits = reported
        resumption?.limits = reported
        resumption?.expires = reported.maxAge.map { now.addingReportingOverflow($0).partialValue }
    }

    /// The largest size of a representation, where that is less than this one.
    var exceededSize: Int64? {
        guard let limit = limits.maxSize, let length = intent.length, length > limit else { return nil }
        return limit
    }

    /// Whether the lifetime that the server sent has passed by the local clock, which may be wrong.
    func isExpired(_ now: Int64) -> Bool { resumption?.expires.map { $0 < now } ?? false }

    /// A lifetime that has passed ends all access to the upload resource (draft section 4.1.4). Of one that was sent in
    /// an earlier run it is not known whether the local clock was right then and now: the server is asked before anything
    /// is forgotten.
    private mutating func checkExpiry(now: Int64) {
        guard isExpired(now) else { return }
        switch phase {
        case .append, .retrieve, .replay: break
        case .create, .discover, .cancel, .sending, .finished, .failed: return
        }
        guard isOwnCreation else {
            if !isKnownToExist { phase = .retrieve }
            return
        }
        attempts += 1
        forgetUpload()
        phase = attempts > retry.triesWithoutProgress ? .failed(.exhausted(lastReason: .expiry)) : .create
    }

    mutating func forgetUpload() {
        resumption = nil
        acknowledged = 0
        temporaryURI = nil
        isUploadForeign = false
        isKnownToExist = false
        limits.maxAge = nil
    }
}
