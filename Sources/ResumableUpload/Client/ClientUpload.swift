import HTTPSemantics

/// The state of one upload on the client: it returns the next request, and receives the responses.
///
/// It does no input or output, and gets the time as a parameter. The order of calls is: ``next(now:)``, and for a
/// request any number of ``interim(_:now:)``, then one of ``responded(_:sent:hasSourceEnded:problem:now:)`` and
/// ``interrupted(_:sent:hasSourceEnded:)``, then ``next(now:)`` again. There is at most one request at a time.
package struct ClientUpload: Sendable {
    /// The data for another run; `nil` if there is nothing to resume.
    package internal(set) var resumption: UploadResumption?
    /// The highest offset that the server has reported, in bytes.
    package internal(set) var acknowledged: Int64 = 0

    enum Phase: Sendable {
        case create
        /// Send an append at `acknowledged`.
        case append
        case retrieve
        /// Request the stored final response, after a retrieval has reported that the upload is complete.
        case replay(ClientResponseHead)
        /// Request the limits of the target, then create or retrieve.
        case discover
        /// Delete the upload resource, then fail.
        case cancel(ClientFailure)
        case sending(ClientRequest)
        /// Get new credentials, then continue with the associated phase.
        indirect case refreshCredentials(Phase)
        case finished(UploadOutcome)
        case failed(ClientFailure)
    }

    /// The next step after the current request has been aborted.
    enum AbortPlan: Sendable {
        case abort(ClientFailure)
        /// The content was more than the server accepts in one request.
        case sendInParts
    }

    var intent: UploadIntent
    let retry: RetryPolicy
    let random: @Sendable () -> Double

    var phase: Phase
    var pendingWait: (duration: Duration, reason: ClientInterruption)?
    var abort: AbortPlan?
    /// The response to use if the current replay fails.
    var completed: ClientResponseHead?
    /// The failure to report after the current cancellation.
    var failure: ClientFailure?
    /// The number of retries since the last progress.
    package internal(set) var attempts = 0
    /// Decides whether the upload continues with other credentials after a 401 or 407.
    package var credentials = CredentialRenewal()

    var limits = UploadLimits()
    /// The maximum content of one request in bytes, derived from the sizes of rejected requests.
    var learnedMax: Int64?
    /// Whether the limits of the target were requested.
    var hasDiscovered = false
    /// Whether the target supports resumable uploads; `nil` if that is unknown.
    package internal(set) var isResumptionSupported: Bool?

    /// The current target and upload resource, after redirections.
    var target: ClientRequest.Resource = .target
    var temporaryURI: String?
    var redirections = 0
    var isTargetForeign = false
    var isUploadForeign = false
    /// Whether the upload resource was created or reported in this run.
    var isOwnCreation = true
    /// Whether the server has only announced the upload resource, with a 104 response. A server that then crashes may
    /// lose the resource, because it has reported no offset.
    var isOnlyAnnounced = false
    /// Whether the server may have received all content of a request that completes the upload.
    var isPossiblyComplete = false
    /// Whether a retrieval has just shown that the server still has the upload.
    var isKnownToExist = false

    /// Starts a new upload.
    /// - Parameter random: returns random numbers in 0..<1, for the waits between tries.
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

    /// Resumes an upload. Its first request retrieves the offset.
    /// - Parameter intent: the version of `resuming` replaces that of the intent.
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

    /// Returns the next step.
    /// - Parameter now: seconds since 1970.
    package mutating func next(now: Int64) -> ClientStep<UploadOutcome> {
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
        case .refreshCredentials: return .refreshCredentials
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

    private mutating func send(_ request: ClientRequest) -> ClientStep<UploadOutcome> {
        phase = .sending(request)
        return .send(request)
    }

    /// Whether the target has responded to the complete upload.
    package var isFinished: Bool { if case .finished = phase { true } else { false } }

    /// Reports that the source cannot provide the bytes at `offset`. The upload is deleted, because it cannot be
    /// completed (draft section 4.3.1).
    package mutating func sourceFailed(at offset: Int64) {
        abort(.sourceUnavailable(at: offset))
    }

    /// Cancels the upload and deletes its resource.
    package mutating func cancel() {
        abort(.canceled)
    }

    // MARK: Transitions

    /// Deletes the upload resource, if there is one, and then fails.
    mutating func abort(_ failure: ClientFailure) {
        pendingWait = nil
        abort = nil
        switch phase {
        case .finished, .failed: return
        default: phase = .cancel(failure)
        }
    }

    /// Fails permanently; there is nothing to resume.
    mutating func fail(_ failure: ClientFailure) {
        resumption = nil
        phase = .failed(failure)
    }

    /// Ends this run. Another run can resume the upload if there is an upload resource.
    mutating func stop(_ failure: ClientFailure) {
        phase = .failed(failure)
    }

    mutating func finish(_ head: ClientResponseHead, isResponseLost: Bool = false) {
        if head.status.isSuccessful, let length = intent.length { record(offset: length) }
        phase = .finished(UploadOutcome(response: head, isResponseLost: isResponseLost))
    }

    /// Retries after a delay, or fails after too many retries.
    /// - Parameter duration: the delay that the server requests; `nil`: that of the policy.
    mutating func tryAgain(_ phase: Phase, after duration: Duration? = nil, because reason: ClientInterruption) {
        attempts += 1
        credentials.noteAttempt()
        guard attempts <= retry.maxRetriesWithoutProgress else { return stop(.exhausted(lastReason: reason)) }
        self.phase = phase
        let wait = retry.delay(before: attempts, random: random(), isRefused: reason.isRefusal)
        pendingWait = (duration ?? wait, reason)
    }

    /// Records an offset that the server reported, if it is larger than the previous one.
    mutating func record(offset: Int64) {
        guard offset > acknowledged else { return }
        acknowledged = offset
        resumption?.acknowledged = offset
        attempts = 0
        credentials.noteAttempt()
    }

    /// Continues at an offset that the server reported, or aborts the upload.
    /// - Returns: whether it continues.
    mutating func accept(offset: Int64) -> Bool {
        if let problem = problem(with: offset) {
            abort(problem)
            return false
        }
        record(offset: offset)
        return true
    }

    func problem(with offset: Int64) -> ClientFailure? {
        if offset < acknowledged { return .offsetLost(acknowledged: acknowledged, reported: offset) }
        if let length = intent.length, offset > length { return .offsetImpossible(offset) }
        return nil
    }

    /// Records the limits in a response.
    mutating func record(limitsOf fields: Fields, now: Int64) {
        guard let reported = UploadLimits(parsing: fields, dialect: intent.dialect) else { return }
        limits = reported
        resumption?.limits = reported
        resumption?.expires = reported.maxAge.map { now.addingReportingOverflow($0).partialValue }
    }

    /// The maximum size of a representation, if this upload exceeds it; otherwise `nil`.
    var exceededSize: Int64? {
        guard let limit = limits.maxSize, let length = intent.length, length > limit else { return nil }
        return limit
    }

    /// Whether the lifetime that the server sent has passed by the local clock, which may be wrong.
    func isExpired(_ now: Int64) -> Bool { resumption?.expires.map { $0 < now } ?? false }

    /// After its lifetime has passed, an upload resource is not accessed any more (draft section 4.1.4). If the
    /// lifetime was sent in an earlier run, the local clock may have been wrong, so the offset is retrieved before the
    /// upload is dropped.
    private mutating func checkExpiry(now: Int64) {
        guard isExpired(now) else { return }
        switch phase {
        case .append, .retrieve, .replay: break
        case .create, .discover, .cancel, .sending, .refreshCredentials, .finished, .failed: return
        }
        guard isOwnCreation else {
            if !isKnownToExist { phase = .retrieve }
            return
        }
        attempts += 1
        forgetUpload()
        phase = attempts > retry.maxRetriesWithoutProgress ? .failed(.exhausted(lastReason: .expiry)) : .create
    }

    mutating func forgetUpload() {
        resumption = nil
        acknowledged = 0
        temporaryURI = nil
        isUploadForeign = false
        isOnlyAnnounced = false
        isPossiblyComplete = false
        isKnownToExist = false
        limits.maxAge = nil
    }
}

/// The next step of an upload or a download on the client.
package enum ClientStep<Outcome: Sendable>: Sendable {
    /// Send this request, and report its interim responses and then its result.
    case send(ClientRequest)
    /// Wait for this duration because of the interruption, then call `next` again.
    case wait(Duration, ClientInterruption)
    /// Get new credentials, because the server did not accept those of the last request (401). Then call
    /// `credentialsRefreshed(isFresh:)`, and `next` again.
    case refreshCredentials
    /// Everything is sent or received.
    case finished(Outcome)
    case failed(ClientFailure)
}

/// The next step after an interim response.
package enum InterimReaction: Sendable, Hashable {
    case proceed
    /// Send the content that waits for the announcement.
    case openGate
    /// Abort the request and report it as interrupted.
    case abort
}

/// The result of a complete upload.
package struct UploadOutcome: Sendable, Hashable {
    /// The response of the target, with any status; if it is lost, the last response to a retrieval.
    package var response: ClientResponseHead
    package var isResponseLost: Bool

    package init(response: ClientResponseHead, isResponseLost: Bool) {
        self.response = response
        self.isResponseLost = isResponseLost
    }
}
