import ResumableUpload
import SystemCalls

/// What the uploads of one client have learned of servers, so that the next ones need not find it out again.
///
/// It is kept for some minutes only: a server can be replaced by another version.
final class ServerTraits: Sendable {
    private struct Traits {
        /// In monotonic nanoseconds.
        var learnedAt: Int64
        /// Whether a creation was answered without the 104 that its content waited for.
        var isSilent = false
        /// The response of a target to a request for its limits.
        var supportsResumption: Bool?
        /// Bytes of content that a request to an upload resource may have.
        var maximumAppend: Int64?
    }

    private static let lifetime: Int64 = 300_000_000_000
    private static let maximumCount = 1000

    private let known = Monitor<[String: Traits]>([:])

    /// Whether content of this length waits for 104. If it does not, a crash loses what was sent, so that only small
    /// content is sent at once.
    func awaitsInterim(_ target: RequestURI, length: Int64?) -> Bool {
        guard let length, length <= CreationStyle.maxSizeWithoutDiscovery else { return true }
        return traits(of: target.origin)?.isSilent != true
    }

    func supportsResumption(_ target: RequestURI) -> Bool? { traits(of: target.text)?.supportsResumption }

    func maximumAppend(_ target: RequestURI) -> Int64? { traits(of: target.text)?.maximumAppend }

    /// A creation with content was answered.
    /// - Parameter isAnnounced: whether a 104 came before.
    func noteCreation(_ target: RequestURI, isAnnounced: Bool) {
        change(target.origin) { $0.isSilent = !isAnnounced }
    }

    func noteSupport(_ target: RequestURI, _ isSupported: Bool) {
        change(target.text) { $0.supportsResumption = isSupported }
    }

    func noteLimits(_ target: RequestURI, _ limits: UploadLimits) {
        guard limits.maxAppendSize != maximumAppend(target) else { return }
        change(target.text) { $0.maximumAppend = limits.maxAppendSize }
    }

    private func traits(of key: String) -> Traits? {
        let now = SystemClock.monotonicNanoseconds()
        return known.withLock { $0[key] }.flatMap { now - $0.learnedAt < Self.lifetime ? $0 : nil }
    }

    private func change(_ key: String, _ body: (inout Traits) -> Void) {
        let now = SystemClock.monotonicNanoseconds()
        known.withLock { known in
            let current = known[key].flatMap { now - $0.learnedAt < Self.lifetime ? $0 : nil }
            if current == nil, known.count >= Self.maximumCount { known = [:] }
            var traits = current ?? Traits(learnedAt: now)
            body(&traits)
            known[key] = traits
        }
    }
}

extension RequestURI {
    /// Scheme, host and port (RFC 6454).
    fileprivate var origin: String { scheme + "://" + authority }
}
