import HTTPSemantics
import ResumableUpload

/// The state machine of one download. It decides what is requested, what a response means, and when to try again. It
/// does no I/O.
///
/// Order of calls: ``next()`` → (send) → ``reception(of:)`` when the head has arrived → exactly one of
/// ``responded(_:position:ending:now:)`` and ``interrupted(_:)`` → ``next()`` …
struct DownloadMachine: Sendable {
    private enum Phase: Sendable {
        /// The next request has not been created yet.
        case ready
        /// `start` is the offset of the first byte that is requested.
        case sending(ClientRequest, start: Int64)
        case refreshCredentials
        case finished(ClientResponseHead)
        case failed(ClientFailure)
    }

    /// The bytes that are kept of one representation: `position` is their number.
    struct Bytes: Sendable, Hashable {
        var representation: DownloadRepresentation
        var position: Int64
    }

    static let maxRedirections = 10

    private let retry: RetryPolicy
    private let random: @Sendable () -> Double
    private var phase = Phase.ready
    /// The representation whose bytes are kept.
    private(set) var representation: DownloadRepresentation?
    /// The number of bytes that are kept, from the beginning of the representation.
    private(set) var position: Int64
    /// The bytes of an earlier representation, which are kept until their replacement is complete.
    private(set) var earlier: Bytes?
    /// Whether bytes of an earlier representation are kept until their replacement is complete.
    private let shouldKeepEarlier: Bool
    /// Whether the entire representation is requested although bytes are kept, because a response did not
    /// match them.
    private var shouldRequestEverything = false
    /// The highest position so far: bytes that are received again are no progress.
    private var highestPosition: Int64
    /// The number of attempts without progress.
    private(set) var attempts = 0
    /// Decides whether the download continues with other credentials after a 401 or 407.
    var credentials = CredentialRenewal()
    private var pendingWait: (duration: Duration, reason: ClientInterruption)?
    private var redirections = 0
    /// Whether the next redirection is the result of the download, and is not followed.
    private var isRedirectionDeclined = false
    /// The resource of the next request: the target, or the one to which redirections have led. Every attempt starts at
    /// the target again, because redirections to storage elsewhere are often valid for a short time only.
    private var resource = ClientRequest.Resource.target
    private var isOtherOrigin = false
    /// Whether it is uncertain that the kept bytes are complete, because a 416 had no validator. The last byte is then
    /// requested again, because the 206 response to this request has a validator.
    private(set) var isCompletenessUncertain = false

    /// - Parameters:
    ///   - representation: the representation whose bytes are kept; `nil` for a new download.
    ///   - position: the number of bytes that are kept.
    ///   - earlier: the bytes of an earlier representation, if they are also kept.
    ///   - shouldKeepEarlier: whether bytes of an earlier representation are kept until their replacement is complete.
    ///   - random: a number in 0..<1, for the waits between attempts.
    init(
        _ representation: DownloadRepresentation? = nil, position: Int64 = 0, earlier: Bytes? = nil,
        shouldKeepEarlier: Bool = true,
        retry: RetryPolicy, random: @escaping @Sendable () -> Double
    ) {
        self.representation = representation
        self.position = position
        self.earlier = earlier
        self.shouldKeepEarlier = shouldKeepEarlier
        highestPosition = max(position, earlier?.position ?? 0)
        self.retry = retry
        self.random = random
        dropUnresumableBytes()
    }

    /// Returns the next step.
    mutating func next() -> ClientStep<ClientResponseHead> {
        if let wait = pendingWait {
            pendingWait = nil
            return .wait(wait.duration, wait.reason)
        }
        switch phase {
        case .ready:
            let (request, start) = nextRequest()
            phase = .sending(request, start: start)
            return .send(request)
        case .sending(let request, _): return .send(request)
        case .refreshCredentials: return .refreshCredentials
        case .finished(let head): return .finished(head)
        case .failed(let failure): return .failed(failure)
        }
    }

    /// The offset of the first byte that the current request is for; 0: the entire representation, without `Range`.
    var start: Int64 {
        if case .sending(_, let start) = phase { start } else { 0 }
    }

    var isFinished: Bool {
        if case .finished = phase { true } else { false }
    }

    /// Whether bytes are kept that a later response can continue.
    var hasBytes: Bool { position > 0 && representation?.validator != nil }

    private func nextRequest() -> (ClientRequest, start: Int64) {
        var fields = Fields()
        if !shouldRequestEverything, position > 0, let validator = representation?.validator {
            fields.append("Range", "bytes=\(position)-")
            fields.append("If-Range", validator.value)
        }
        let request = ClientRequest(
            kind: .download, resource: resource, method: .get, fields: fields, content: .none,
            hasCredentials: !isOtherOrigin)
        return (request, fields.isEmpty ? 0 : position)
    }

    // MARK: Events

    /// Handles the response to the request.
    /// - Parameters:
    ///   - position: the number of bytes that are kept after its content was written.
    ///   - ending: the end of the content.
    ///   - now: seconds since 1970.
    mutating func responded(_ head: ClientResponseHead, position: Int64, ending: ContentEnding, now: Int64) {
        guard case .sending = phase else { return }
        switch reception(of: head) {
        case .resume(let representation, let end):
            self.representation = representation
            note(position)
            handleEnd(ending, isAtEnd: position == end, head)
        case .replace(var representation):
            if shouldKeepEarlier, hasBytes, earlier == nil, let known = self.representation {
                earlier = Bytes(representation: known, position: self.position)
            }
            shouldRequestEverything = false
            let isAtEnd = representation.total.map { $0 == position } ?? true
            if isAtEnd, ending == .complete { representation.total = position }
            self.representation = representation
            isCompletenessUncertain = false
            note(position)
            handleEnd(ending, isAtEnd: isAtEnd, head)
        case .complete(let representation):
            self.representation = representation
            phase = .finished(head)
        case .doubtful(let representation):
            self.representation = representation
            isCompletenessUncertain = true
            self.position -= 1
            requestAgain()
        case .inconsistent: restart()
        case .earlier:
            returnToEarlier()
            attempts += 1
            guard attempts <= retry.maxRetriesWithoutProgress else {
                return fail(.exhausted(lastReason: .inconsistent))
            }
            requestAgain()
        case .unexpected:
            tryAgain(after: retry.retryAfter(head.fields, now: now), because: .unexpected(head.status))
        case .redirection where isRedirectionDeclined: fail(.refused(head.status))
        case .redirection: follow(head)
        case .refusal: handleRefusal(head, now: now)
        case .violation(let text): phase = .failed(.violation(text))
        }
    }

    /// Makes the next redirection the result of the download.
    mutating func declineRedirection() { isRedirectionDeclined = true }

    /// Handles the end of a request without the head of a response.
    mutating func interrupted(_ reason: ClientInterruption) {
        guard case .sending = phase else { return }
        tryAgain(because: reason)
    }

    /// Reports that there are other credentials: the request is made again.
    /// - Parameter isFresh: as for `CredentialRenewal.noteRenewal(isFresh:)`.
    mutating func credentialsRefreshed(isFresh: Bool) {
        guard case .refreshCredentials = phase else { return }
        credentials.noteRenewal(isFresh: isFresh)
        requestAgain()
    }

    private mutating func handleEnd(_ ending: ContentEnding, isAtEnd: Bool, _ head: ClientResponseHead) {
        switch ending {
        case .overrun:
            // All bytes of this response are dropped.
            position = start
            restart()
        case .cut(let reason): tryAgain(because: reason)
        case .complete where !isAtEnd: tryAgain(because: .truncated)
        case .complete where representation?.total == position: phase = .finished(head)
        // A server may send less than was requested.
        case .complete: requestAgain()
        }
    }

    private mutating func handleRefusal(_ head: ClientResponseHead, now: Int64) {
        let status = head.status
        if credentials.isPossible(after: status) {
            phase = .refreshCredentials
        } else if status.isUnauthorized {
            phase = .failed(.unauthorized(status))
        } else if status.isTransient || status.isRedirection && hasBytes {
            let reason = status.isTransient ? ClientInterruption.status(status) : .unexpected(status)
            tryAgain(after: retry.retryAfter(head.fields, now: now), because: reason)
        } else {
            phase = .failed(.refused(status))
        }
    }

    private mutating func follow(_ head: ClientResponseHead) {
        guard let location = head.location else {
            return hasBytes ? tryAgain(because: .unexpected(head.status)) : fail(.refused(head.status))
        }
        redirections += 1
        guard redirections <= Self.maxRedirections else { return fail(.tooManyRedirects) }
        switch location.relation {
        case .insecure: return fail(.insecureRedirect)
        // If another origin redirects back to the first one, the request carries no credentials either, because the
        // other origin has chosen its URI.
        case .otherOrigin: isOtherOrigin = true
        case .sameOrigin: break
        }
        resource = .other(location.uri)
        phase = .ready
    }

    // MARK: Transitions

    private mutating func fail(_ failure: ClientFailure) {
        phase = .failed(failure)
    }

    private mutating func note(_ position: Int64) {
        self.position = position
        guard position > highestPosition else { return }
        highestPosition = position
        attempts = 0
        credentials.noteAttempt()
    }

    private mutating func requestAgain() {
        resource = .target
        isOtherOrigin = false
        redirections = 0
        phase = .ready
    }

    /// Requests the entire representation. The bytes that are kept are not removed until it is complete.
    private mutating func restart() {
        shouldRequestEverything = true
        isCompletenessUncertain = false
        attempts += 1
        guard attempts <= retry.maxRetriesWithoutProgress else {
            return fail(.exhausted(lastReason: .inconsistent))
        }
        requestAgain()
    }

    private mutating func tryAgain(after duration: Duration? = nil, because reason: ClientInterruption) {
        dropUnresumableBytes()
        attempts += 1
        credentials.noteAttempt()
        guard reason != .unusableConnection, attempts <= retry.maxRetriesWithoutProgress else {
            return fail(.exhausted(lastReason: reason))
        }
        let wait = retry.delay(before: attempts, random: random(), isRefused: reason.isRefusal)
        pendingWait = (duration ?? wait, reason)
        requestAgain()
    }

    /// Drops the bytes that are kept if no response can continue them, or if `earlier` has more bytes of the same
    /// representation.
    private mutating func dropUnresumableBytes() {
        if let earlier {
            let isLonger =
                representation.flatMap { earlier.representation.hasSameValidator(as: $0) } == true
                && earlier.position > position
            if !hasBytes || isLonger { return returnToEarlier() }
        }
        guard representation?.validator == nil else { return }
        representation = nil
        position = 0
    }

    /// Returns to the earlier bytes.
    private mutating func returnToEarlier() {
        representation = earlier?.representation
        position = earlier?.position ?? 0
        earlier = nil
        isCompletenessUncertain = false
    }
}

extension DownloadMachine: TransferMachine {
    mutating func next(now: Int64) -> ClientStep<ClientResponseHead> { next() }

    func follows(_ status: Status, to request: ClientRequest) -> Bool {
        reception(of: ClientResponseHead(status: status, fields: Fields())) == .redirection
    }
}

/// The end of the content of a response.
enum ContentEnding: Sendable, Hashable {
    /// The content is complete according to its framing.
    case complete
    /// The content was interrupted before its end.
    case cut(ClientInterruption)
    /// The content was longer than the head stated.
    case overrun
}
