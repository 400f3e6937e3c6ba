import HTTPSemantics

extension ClientUpload {
    /// Handles the end of the current request without a final response.
    /// - Parameters:
    ///   - sent: the number of bytes of its content that were sent.
    ///   - hasSourceEnded: whether the source ended after these bytes.
    package mutating func interrupted(_ reason: ClientInterruption, sent: Int64, hasSourceEnded: Bool) {
        guard case .sending(let request) = phase else { return }
        if hasSourceEnded, intent.length == nil, case .remaining(let start, _) = request.content {
            intent.length = start + sent
            resumption?.length = intent.length
        }
        if intent.dialect.completeness(of: request.fields) == true, !request.content.exceeds(sent) {
            mayBeComplete = true
        }
        if let plan = abort {
            abort = nil
            switch plan {
            case .abort(let failure): return abort(failure)
            case .sendInParts:
                // If nothing was sent, the server has received nothing, so the offset need not be retrieved.
                phase = sent == 0 && request.kind == .create ? .append : .retrieve
                return
            }
        }
        switch request.kind {
        case .cancel: return endCancellation(isConfirmed: false)
        case .discover: return endDiscovery(isSupported: false)
        case .create, .append, .retrieve, .download: break
        }
        // The target may have refused the complete content, so the response is requested again.
        completed = nil
        guard reason != .unusableConnection else { return stop(.exhausted(lastReason: reason)) }
        if resumption != nil { return tryAgain(.retrieve, because: reason) }
        if isRepeatable(request, reason, sent: sent) {
            tryAgain(.create, because: reason)
        } else {
            fail(.notResumable(reason))
        }
    }

    /// Whether a creation without any response can be repeated.
    private func isRepeatable(_ request: ClientRequest, _ reason: ClientInterruption, sent: Int64) -> Bool {
        if reason == .unreachable || intent.method == .put { return true }
        if intent.style != .plain, intent.dialect.completeness(of: request.fields) == false { return true }
        // The server cannot have processed content that was not sent.
        return sent == 0 && request.content.exceeds(0)
    }
}

extension ClientUpload {
    /// Handles an interim response to the current request. Only a 104 about the upload has an effect.
    /// - Parameter now: seconds since 1970.
    package mutating func interim(_ head: ClientResponseHead, now: Int64) -> InterimReaction {
        guard case .sending(let request) = phase, head.status == .uploadResumptionSupported, abort == nil,
            intent.style != .plain, intent.dialect.understands(head.fields)
        else { return .proceed }
        var reaction = InterimReaction.proceed
        if request.kind == .create, let location = head.location {
            if let known = resumption, known.uri != location.uri { return end(.abort(.locationChanged)) }
            // An unusable location is ignored: without an interruption the upload can still succeed.
            if isUsable(location) {
                adopt(location, now: now)
                isOnlyAnnounced = true
            }
            reaction = .openGate
        }
        record(limitsOf: head.fields, now: now)
        guard resumption != nil else { return reaction }
        if let exceededSize { return end(.abort(.tooLarge(limit: exceededSize))) }
        if let limit = limits.maxAppendSize, request.content.exceeds(limit) { return end(.sendInParts) }
        if request.kind == .create || request.kind == .append,
            let offset = head.fields.uploadInteger(UploadFieldName.offset)
        {
            if let problem = problem(with: offset) { return end(.abort(problem)) }
            isOnlyAnnounced = false
            record(offset: offset)
        }
        return reaction
    }

    private mutating func end(_ plan: AbortPlan) -> InterimReaction {
        abort = plan
        return .abort
    }

    func isUsable(_ location: ResolvedLocation) -> Bool {
        switch location.relation {
        case .sameOrigin: true
        case .otherOrigin: intent.allowsOtherOrigin
        case .insecure: false
        }
    }

    /// Stores the upload resource, so that the upload can be resumed.
    mutating func adopt(_ location: ResolvedLocation, now: Int64) {
        isOwnCreation = true
        isUploadForeign = location.relation == .otherOrigin
        resumption = UploadResumption(
            uri: location.uri, dialect: intent.dialect, acknowledged: acknowledged, length: intent.length,
            limits: limits, expires: nil)
    }
}

extension ClientUpload {
    // MARK: Refusals of a creation or an append

    mutating func handleRefusal(_ response: ReceivedResponse, to request: ClientRequest) {
        let status = response.status
        if status.isUnauthorized { return stop(.unauthorized(status)) }
        if response.problem?.isDigestMismatch == true { return abort(.digestMismatch) }
        if status == .contentTooLarge { return handleTooLarge(response, request) }
        if request.kind == .append {
            if status.isGone { return handleMissingResource(response) }
            if status == .conflict { return handleConflict(response, request) }
        }
        guard status.isTransient else {
            // Another run can still resume an upload that was in progress.
            return request.kind == .append ? stop(.refused(status)) : fail(.refused(status))
        }
        if resumption != nil { return tryLater(.retrieve, response) }
        // Without an upload resource the entire content would be sent again, which is allowed only if the first attempt
        // had no effect.
        let isRepeatable =
            intent.method == .put || response.sent == 0 || status == .tooManyRequests || status == .serviceUnavailable
        if isRepeatable { tryLater(.create, response) } else { fail(.refused(status)) }
    }

    mutating func tryLater(_ phase: Phase, _ response: ReceivedResponse) {
        tryAgain(
            phase, after: retry.retryAfter(response.head.fields, now: response.now), because: .status(response.status))
    }

    private mutating func handleConflict(_ response: ReceivedResponse, _ request: ClientRequest) {
        guard let reported = response.offset ?? response.problem?.expectedOffset, reported != request.offset else {
            return tryAgain(.retrieve, because: .offsetConflict)
        }
        if let problem = problem(with: reported) { return abort(problem) }
        let before = acknowledged
        record(offset: reported)
        // A changed offset is progress. An unchanged one could be reported forever, so it counts as a failed attempt.
        if acknowledged == before { tryAgain(.retrieve, because: .offsetConflict) } else { phase = .append }
    }

    /// 413: content of this size is not sent again (draft section 4.1.4).
    private mutating func handleTooLarge(_ response: ReceivedResponse, _ request: ClientRequest) {
        if let exceededSize { return abort(.tooLarge(limit: exceededSize)) }
        guard intent.style != .plain, let size = request.content.size(sent: response.sent),
            let smaller = bound.below(size)
        else { return abort(.tooLarge(limit: limits.maxSize)) }
        learnedMax = min(learnedMax ?? .max, smaller)
        // A limit of age does not explain the rejection.
        let areLimitsKnown = limits != UploadLimits(maxAge: limits.maxAge)
        if !areLimitsKnown, !hasDiscovered {
            hasDiscovered = true
            phase = .discover
        } else {
            phase = resumption == nil ? .create : .retrieve
        }
    }

    // MARK: Redirections

    private static let maxRedirections = 5

    /// After 307 and 308 the request is sent to another URI with the same method and content (RFC 9110 sections 15.4.8
    /// and 15.4.9).
    mutating func follow(_ head: ClientResponseHead, of request: ClientRequest) {
        redirections += 1
        guard let location = head.location else { return stop(.refused(head.status)) }
        guard redirections <= Self.maxRedirections else { return stop(.tooManyRedirects) }
        guard location.relation != .insecure else { return stop(.locationUnusable(.insecure)) }
        let isForeign = location.relation == .otherOrigin
        switch request.kind {
        case .create, .discover:
            if isForeign { isTargetForeign = true }
            target = .other(location.uri)
            // The upload resource of a redirected creation is not used.
            if request.kind == .create { forgetUpload() }
            phase = request.kind == .create ? .create : .discover
        case .append, .retrieve, .cancel, .download:
            guard !isForeign || intent.allowsOtherOrigin else { return stop(.locationUnusable(.otherOrigin)) }
            if isForeign { isUploadForeign = true }
            if head.status == .permanentRedirect {
                temporaryURI = nil
                resumption?.uri = location.uri
            } else {
                temporaryURI = location.uri
            }
            phase = completed.map { .replay($0) } ?? (request.kind == .append ? .append : .retrieve)
            completed = nil
        }
    }
}

extension RequestContent {
    /// The size of content that the server rejected as too large, of which `sent` bytes were sent; `nil` if it was
    /// empty.
    func size(sent: Int64) -> Int64? {
        switch self {
        case .none, .empty: nil
        case .range(_, let count): count
        case .remaining(_, let limit): limit ?? max(sent, Self.unknownSize)
        }
    }

    /// The assumed size of content of unknown length that was rejected before much of it was sent.
    private static let unknownSize: Int64 = 16 << 20
}

/// Decides whether a transfer continues with other credentials after a 401 or 407.
package struct CredentialRenewal: Sendable {
    /// The source of other credentials.
    package enum Source: Sendable, Hashable {
        /// The closure of the client that refreshes credentials. It is called next.
        case refresh
        /// The handler of the transfer. It has chosen the credentials already, and limits the number of attempts itself.
        case handler
    }

    /// The source of credentials other than those of the current request; `nil` if there is none. It is set before the
    /// response to the request is handled.
    package var source: Source?
    /// Whether the credentials were refreshed since the last progress or retry. If the server does not accept them
    /// either, another refresh would not help.
    private var isFresh = false

    package init() {}

    /// Whether the request is made again with other credentials after a response with this status.
    package func isPossible(after status: Status) -> Bool {
        switch source {
        case .refresh: status == .unauthorized && !isFresh
        case .handler: [401, 407].contains(status)
        case nil: false
        }
    }

    /// Notes that there are other credentials.
    /// - Parameter isFresh: whether they were requested after the server had rejected those of the last request. False
    ///   if newer credentials already existed: they may be old, too, so another refresh is allowed.
    package mutating func noteRenewal(isFresh: Bool) { self.isFresh = isFresh }

    /// Notes progress or a retry, after which another refresh is allowed.
    package mutating func noteAttempt() { isFresh = false }
}

extension ClientUpload {
    /// Whether the upload continues with other credentials: the request is then made again.
    func shouldRefreshCredentials(after head: ClientResponseHead) -> Bool {
        credentials.isPossible(after: head.status)
            // The application's response to the complete upload is final.
            && (intent.style == .plain || intent.dialect.completeness(of: head.fields) != true)
    }

    /// Requests other credentials. After that an upload with an upload resource retrieves its offset, so that no byte
    /// that the server has is sent again.
    mutating func refreshCredentials(for request: ClientRequest) {
        let resumption = resumption
        let following: Phase =
            switch request.kind {
            case .discover: .discover
            case .cancel: .cancel(failure ?? .canceled)
            case .create where resumption == nil: .create
            case .create, .append, .retrieve, .download: completed.map { .replay($0) } ?? .retrieve
            }
        completed = nil
        phase = .refreshCredentials(following)
    }

    /// Reports that there are other credentials.
    /// - Parameter isFresh: as for ``CredentialRenewal/noteRenewal(isFresh:)``.
    package mutating func credentialsRefreshed(isFresh: Bool) {
        guard case .refreshCredentials(let following) = phase else { return }
        credentials.noteRenewal(isFresh: isFresh)
        phase = following
    }
}

/// The number of retries of an interrupted transfer, and the delays before them.
public struct RetryPolicy: Sendable, Hashable {
    /// The maximum delays before the first, second and further retries; the last one is used for all later
    /// retries. The actual delay is a random part of the maximum, so that the clients of a restarted server do not
    /// reconnect at the same time.
    public var delays: [Duration] = [0, 1, 2, 4, 8, 15, 30].map { .seconds($0) }
    /// The maximum number of retries without progress; progress resets the count.
    public var maxRetriesWithoutProgress: Int = 8
    /// The maximum delay that is accepted from `Retry-After`.
    public var maxRetryAfter: Duration = .seconds(600)

    /// Creates the default policy.
    public init() {}

    /// The delay before retry number `attempt`, starting with 1.
    /// - Parameters:
    ///   - random: in 0..<1.
    ///   - isRefused: whether the server responded with an error. The delay is then at least half of the maximum.
    package func delay(before attempt: Int, random: Double, isRefused: Bool = false) -> Duration {
        guard let last = delays.last, attempt > 0 else { return .zero }
        let longest = max(attempt <= delays.count ? delays[attempt - 1] : last, .zero)
        guard isRefused else { return longest * random }
        let positive = longest > .zero ? longest : delays.first { $0 > .zero } ?? .zero
        return positive * (0.5 + random / 2)
    }

    /// The delay that `Retry-After` (RFC 9110 section 10.2.3) requests, as seconds or a date; `nil` if it is absent or
    /// malformed.
    /// - Parameter now: seconds since 1970.
    package func retryAfter(_ fields: Fields, now: Int64) -> Duration? {
        let values = fields.values("Retry-After")
        guard values.count == 1, let value = values.first, !value.isEmpty else { return nil }
        let seconds: Int64
        if value.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) {
            seconds = Int64(value) ?? .max
        } else {
            guard let date = HTTPDate(parsing: value, relativeTo: HTTPDate(secondsSinceEpoch: now)) else { return nil }
            seconds = date.secondsSinceEpoch - now
        }
        return min(max(.zero, .seconds(seconds)), maxRetryAfter)
    }
}

extension Status {
    /// Whether a retry can have another result: 408, 423, 425, 429 and 5xx, except 501 and 505, which mean that the
    /// server lacks a feature.
    package var isTransient: Bool {
        isServerError ? rawValue != 501 && rawValue != 505 : [408, 423, 425, 429].contains(rawValue)
    }

    /// Whether other credentials can have another result: 401, 403 and 407.
    package var isUnauthorized: Bool { [401, 403, 407].contains(rawValue) }
}
