import HTTPTransport
import ResumableUpload
import SystemCalls

/// Properties of servers that the uploads of one client have detected, so that later uploads need not detect them
/// again.
///
/// They are kept for five minutes only, because a server can be replaced by another version.
final class ServerTraits: Sendable {
    private struct Traits {
        /// The time at which the first property was found, in monotonic nanoseconds.
        var createdAt: Int64
        /// Whether the server sent a 104 for the last creation; `nil` if that is unknown. A creation without a 104
        /// counts only if the client waited for the 104 before it sent the content.
        var hasAnnouncedUploads: Bool?
        /// Whether the target supports resumable uploads; `nil` if that is unknown.
        var isResumptionSupported: Bool?
        /// The maximum length in bytes of the content of a request to an upload resource.
        var maxAppend: Int64?
    }

    private static let lifetime: Int64 = 300_000_000_000
    private static let maxCount = 1000

    private let known = Monitor<[String: Traits]>([:])

    /// Whether the client waits for a 104 response before it sends content of this length. Content that was sent before
    /// the 104 response is lost in a crash, so only small content is sent immediately.
    func shouldAwaitInterim(_ target: RequestURI, length: Int64?) -> Bool {
        guard let length, length <= CreationStyle.maxSizeWithoutDiscovery else { return true }
        return hasAnnouncedUploads(target) != false
    }

    func hasAnnouncedUploads(_ target: RequestURI) -> Bool? { traits(of: target.origin)?.hasAnnouncedUploads }

    func isResumptionSupported(_ target: RequestURI) -> Bool? { traits(of: target.text)?.isResumptionSupported }

    func maxAppend(_ target: RequestURI) -> Int64? { traits(of: target.text)?.maxAppend }

    /// Notes the response to a creation with content.
    /// - Parameter isAnnounced: whether a 104 response came before that response.
    func noteCreation(_ target: RequestURI, isAnnounced: Bool) {
        change(target.origin) { $0.hasAnnouncedUploads = isAnnounced }
    }

    func noteSupport(_ target: RequestURI, _ isSupported: Bool) {
        change(target.text) { $0.isResumptionSupported = isSupported }
    }

    func noteLimits(_ target: RequestURI, _ limits: UploadLimits) {
        guard limits.maxAppendSize != maxAppend(target) else { return }
        change(target.text) { $0.maxAppend = limits.maxAppendSize }
    }

    private func traits(of key: String) -> Traits? {
        let now = SystemClock.monotonicNanoseconds()
        return known.withLock { $0[key] }.flatMap { now - $0.createdAt < Self.lifetime ? $0 : nil }
    }

    private func change(_ key: String, _ body: (inout Traits) -> Void) {
        let now = SystemClock.monotonicNanoseconds()
        known.withLock { known in
            let current = known[key].flatMap { now - $0.createdAt < Self.lifetime ? $0 : nil }
            if current == nil, known.count >= Self.maxCount { known = [:] }
            var traits = current ?? Traits(createdAt: now)
            body(&traits)
            known[key] = traits
        }
    }
}

extension RequestURI {
    /// Scheme, host and port (RFC 6454).
    fileprivate var origin: String { scheme + "://" + authority }
}
