import UploadStorage

/// The session of a node in the database of the cluster, and the uploads that the node holds. It is a value type with
/// one method for each event: it reads no clock, and does no I/O.
///
/// Only the holder of an upload changes its row, and the database rejects changes by others, whatever time it is. Times
/// decide only when another node may become the holder: the session must not be renewed for its lifetime, measured by the
/// clock of the database. This node stops relying on its holds earlier, by its own clock: ``Times/margin`` before the
/// end of a lifetime that begins when the renewal is sent. It keeps an upload that a target resource processes, until its
/// next session has adopted the upload or another node has acquired it.
package struct NodeSession: Sendable, Hashable {
    package struct Times: Sendable, Hashable {
        /// The time from a renewal to the end of the session, in nanoseconds.
        package var lifetime: Int64 = 15_000_000_000
        /// The time from one renewal to the next.
        package var renewal: Int64 = 5_000_000_000
        /// The time before the end of the session at which the node stops relying on it. It is larger than the error of
        /// two clocks that measure the lifetime.
        package var margin: Int64 = 2_000_000_000

        package init() {}
    }

    /// An upload that this session holds, and that the store uses.
    package struct Hold: Sendable, Hashable {
        package var fence: Int64
        package var blob: String
        package var principal: String
        /// Whether the row records that the target resource processes the upload.
        fileprivate var isProcessing = false
        /// The sessions that have requested the upload.
        fileprivate var requesters: Set<Int64> = []

        package init(fence: Int64, blob: String, principal: String) {
            self.fence = fence
            self.blob = blob
            self.principal = principal
        }
    }

    /// A hold that has to be released in the database.
    package struct Release: Sendable, Hashable {
        package var id: UploadID
        /// The fence of the hold; nil: the hold is released with any fence, because the node does not know it.
        package var fence: Int64?
        /// The sessions to notify.
        package var requesters: Set<Int64>

        package init(id: UploadID, fence: Int64?, requesters: Set<Int64>) {
            self.id = id
            self.fence = fence
            self.requesters = requesters
        }
    }

    /// The action that a request of another session requires.
    package enum Request: Sendable, Hashable {
        case release(Release)
        /// The store has to end its use.
        case endUse
        /// The other session requests the release again.
        case none
    }

    package let times: Times
    /// The number of the session; nil if there is none.
    package private(set) var number: Int64?
    /// The number that the changes of this session need: see onward.resolve_batches.
    package private(set) var batch: Int64 = 0
    /// The sessions of this node, including earlier ones, with a batch whose outcome is unknown. Until they are
    /// resolved, rows cannot be relied on.
    package private(set) var unresolved: Set<Int64> = []
    /// The time from which on other nodes may acquire the uploads.
    private var end: Int64 = .min
    private var holds: [UploadID: Hold] = [:]
    /// The uploads that are being acquired or inserted, with the numbers of such calls.
    private var acquiring: [UploadID: Int] = [:]

    package init(times: Times = Times()) { self.times = times }

    // MARK: The session

    /// Records that the session was opened, and that all earlier sessions of this node have ended.
    /// - Parameters:
    ///   - sentAt: the time at which the statement was sent.
    ///   - adopted: the uploads of ``fences`` that this session holds now.
    /// - Returns: the uploads of ``fences`` that this session does not hold.
    @discardableResult
    package mutating func opened(_ number: Int64, sentAt: Int64, adopting adopted: [UploadID] = []) -> [UploadID] {
        self.number = number
        batch = 0
        renewed(sentAt: sentAt)
        return keepHolds { id, _ in adopted.contains(id) }
    }

    /// Forgets the other holds, and returns their uploads.
    private mutating func keepHolds(_ isKept: (UploadID, Hold) -> Bool) -> [UploadID] {
        let lost = holds.filter { !isKept($0.key, $0.value) }.map(\.key)
        for id in lost { holds[id] = nil }
        return lost
    }

    package mutating func renewed(sentAt: Int64) { end = max(end, sentAt + times.lifetime - times.margin) }

    /// Whether no other node can have acquired an upload that this session holds.
    package func isAlive(at now: Int64) -> Bool { number != nil && now < end }

    /// The time for which ``isAlive(at:)`` is true without another renewal, in nanoseconds.
    package func remainingTime(at now: Int64) -> Int64 { isAlive(at: now) ? end - now : 0 }

    /// Records that the session has ended, or may have ended. An upload that its target resource processes is kept, and
    /// the next session adopts it unless another node has acquired it: its bytes are complete, and the result must not
    /// be lost.
    /// - Returns: the uploads that are not held any more.
    package mutating func ended() -> [UploadID] {
        (number, end) = (nil, .min)
        return keepHolds { $1.isProcessing }
    }

    /// Records that the connection was lost during a commit.
    /// - Parameter session: the session of the batch.
    package mutating func outcomeBecameUnknown(in session: Int64) { unresolved.insert(session) }

    /// Records that the outcomes of all batches of a session are known.
    /// - Parameter nextBatch: the number that the next batches of the session need; nil if the session has ended and
    ///   has no next batch.
    package mutating func resolved(_ session: Int64, nextBatch: Int64?) {
        unresolved.remove(session)
        if let nextBatch, session == number { batch = nextBatch }
    }

    // MARK: Holds

    /// The hold of an upload, if it is certain, or if the target resource processes the upload: then only the row shows
    /// whether another node has acquired it.
    package func hold(_ id: UploadID, at now: Int64) -> Hold? {
        guard let hold = holds[id], hold.isProcessing || isAlive(at: now) else { return nil }
        return hold
    }

    /// The hold of an upload, which may have ended. The database rejects changes without a hold.
    package func lastHold(_ id: UploadID) -> Hold? { holds[id] }

    /// Whether a change that an earlier session has sent can be repeated if it is refused: the upload is still held, so the
    /// session that has adopted it can make the change.
    /// - Parameter session: the session that has sent the change.
    package func canRepeat(_ id: UploadID, of session: Int64) -> Bool { session != number && holds[id] != nil }

    /// Whether this node neither holds nor acquires the upload.
    package func isUnknown(_ id: UploadID) -> Bool { holds[id] == nil && acquiring[id] == nil }

    package var heldCount: Int { holds.count }

    /// The fences of all holds.
    package var fences: [UploadID: Int64] { holds.mapValues(\.fence) }

    /// The fence of the hold in which a lease got its epoch: see onward.acquire.
    static func fence(of epoch: Int64) -> Int64 { epoch >> 32 + 1 }

    package mutating func beginAcquiring(_ id: UploadID) { acquiring[id, default: 0] += 1 }

    package mutating func endAcquiring(_ id: UploadID) {
        let count = (acquiring[id] ?? 1) - 1
        acquiring[id] = count > 0 ? count : nil
    }

    /// - Parameter session: the session that has become the holder.
    package mutating func acquired(_ id: UploadID, _ hold: Hold, by session: Int64) {
        guard session == number else { return }
        if let known = holds[id], known.fence > hold.fence { return }
        let requesters = holds[id]?.requesters ?? []
        holds[id] = hold
        holds[id]?.requesters = requesters
    }

    /// Notes whether the target resource processes the upload: true after the row records it, false before the row
    /// records the opposite.
    /// - Parameter fence: the fence of the change.
    package mutating func set(isProcessing: Bool, _ id: UploadID, fence: Int64) {
        if holds[id]?.fence == fence { holds[id]?.isProcessing = isProcessing }
    }

    /// Removes the hold of a row that has ended, or that does not belong to this session any more.
    package mutating func removeHold(_ id: UploadID) { holds[id] = nil }

    /// Removes the hold of an upload whose use by the store has ended.
    /// - Returns: the release to make in the database; `nil` if the hold has ended, or a later hold has followed.
    package mutating func released(_ id: UploadID, fence: Int64) -> Release? {
        guard let hold = holds[id], hold.fence == fence else { return nil }
        holds[id] = nil
        return Release(id: id, fence: fence, requesters: hold.requesters)
    }

    /// Handles the request of another session for an upload.
    package mutating func requested(_ id: UploadID, by requester: Int64) -> Request {
        if acquiring[id] != nil { return .none }
        guard holds[id] != nil else {
            // A release is on its way or has failed, or the response to an acquisition was lost.
            return .release(Release(id: id, fence: nil, requesters: [requester]))
        }
        holds[id]?.requesters.insert(requester)
        return .endUse
    }
}
