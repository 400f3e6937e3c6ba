import ClusterStorage
import UploadStorage

/// The upload of the model.
let uploadID = UploadID()

/// A model of two nodes, their database and their object storage, with one upload. ``successors()`` returns all states
/// that can follow. Each node has the ``NodeSession`` of the program; everything else is simplified.
///
/// - A call to the database or the storage is sent, takes effect and is answered in three separate steps, between which
///   anything else can happen: so a node or a connection can be slow for any time. A call can also take effect after its
///   sender has stopped waiting or has crashed, or never.
/// - The content consists of units. Each written unit is unique, so that lost and exchanged bytes are detected. A piece
///   has at most two units; a smaller last piece is replaced when the upload grows.
struct ClusterModel: Hashable {
    /// The limits that make the number of states finite.
    struct Limits: Hashable {
        var time: Int64 = 4
        /// The end of the second session, in the database. A later end spares its renewals, which add many states.
        var secondEnd: Int64 = 2
        /// The number of sessions. Two exist at the start.
        var sessions: Int64 = 2
        /// The number of times that the upload is acquired.
        var takeOvers: Int64 = 2
        var writes = 2
        var completions = 1
        /// The number of attempts to publish the file.
        var publications = 0
        var cancellations = 0
        /// The number of times that a node records that the target resource processes the upload, before it calls it.
        var processings = 0
        /// The number of uses that end without a request of another node.
        var ends = 0
        /// Whether the first node has a short upload without a row, instead of an upload that it holds.
        var isShort = false
        /// Whether the short upload never has a row.
        var isPlain = false
        /// The number of calls during which anything else can happen. A change of the row is always such a call.
        var slowCalls = 1
        /// The number of lost responses, late calls and crashes.
        var faults = 1
        var renewals = 1
        var collections = 1
        /// The number of calls that make objects garbage.
        var discards = 0
        /// The number of times that the clock of the database is set.
        var clockSteps = 0
    }

    /// A rule of the protocol that is left out.
    enum Mutation: Hashable, CaseIterable {
        /// The database does not compare the fence of a change.
        case changesIgnoreFence
        /// The database accepts changes of a session without a row.
        case changesIgnoreEndedSession
        /// Unknown outcomes of changes are not resolved.
        case outcomesStayUnknown
        /// The row is changed before the bytes are stored.
        case rowBeforeBytes
        /// The database accepts an offset without the pieces before it.
        case offsetIgnoresPieces
        /// The collector does not consider which sessions are alive.
        case collectorIgnoresSessions
        /// The collector deletes objects without looking for their names.
        case collectorIgnoresNames
        /// A node answers from memory although its session may have ended.
        case readsIgnoreEnd
        /// A node measures the lifetime of its session from the response.
        case lifetimeFromResponse
        /// A node relies on its session until the end of its lifetime, although its clock may be slow.
        case noMargin
        /// An ended session can be renewed.
        case endedSessionsAreRenewed
        /// An upload can be acquired while its holder is alive.
        case acquisitionIgnoresHolder
        /// A node that releases an upload continues to use it.
        case releaseKeepsHold
        /// A node that is not certain of an outcome deletes the new object.
        case deletionAfterUnknownOutcome
        /// The database accepts a publication whatever the batch is.
        case publicationIgnoresBatch
        /// The database publishes a file although the change of the row is refused.
        case publicationIgnoresRefusal
        /// The database publishes the file of a short upload, and records its row in another transaction.
        case publicationWithoutRow
        /// A node looks for a file whose publication has an unknown outcome before that is resolved.
        case confirmationBeforeResolution
        /// A node takes any final response in the row for that of its publication with an unknown outcome.
        case confirmationIgnoresResponse
        /// A node counts an upload as held although the row has confirmed its publication.
        case confirmationKeepsHold
        /// The end of a request with an unknown outcome removes the row of the upload, also if it is complete.
        case completeRowIsForgotten
        /// The database accepts an acquisition whatever the batch is.
        case acquisitionIgnoresBatch
        /// A node does not compare the session of a batch with an unknown outcome with its current one.
        case unknownOutcomeOfCurrentSession
        /// An acquisition by the holder keeps the fence of the last use.
        case usesShareFence
        /// The database does not compare the fence of a release.
        case releaseIgnoresFence
        /// A node answers from memory without looking for a later fence in the row, although the clock of the database
        /// was set.
        case readsIgnoreFence
        /// A removal reports success if another node has acquired the upload.
        case removalIgnoresHold
        /// A session that is opened does not end the earlier ones of its process.
        case openingKeepsSessions
        /// An opening that arrives late ends the later session of its process.
        case lateOpeningEndsSession
        /// A node that acquires an upload which the target resource may have processed calls it again.
        case processingIsRepeated
        /// A session adopts an upload that another node has acquired since.
        case adoptionIgnoresFence
        /// A node whose session has ended keeps an upload that no target resource processes.
        case receivingIsKept
        /// Objects of a transaction with an unknown outcome become garbage before that is resolved.
        case garbageBeforeResolution
        /// Objects of such a transaction become garbage although a row names them.
        case garbageIgnoresNames
    }

    let limits: Limits
    let mutation: Mutation?
    var time: Int64 = 0
    /// The clock of the database minus `time`.
    var clockDifference: Int64 = 0
    var used = Limits(
        time: 0, secondEnd: 0, sessions: 0, takeOvers: 0, writes: 0, completions: 0, slowCalls: 0, faults: 0,
        renewals: 0, collections: 0)
    var database = DatabaseState()
    /// The objects by their keys.
    var objects: [Key: [UInt8]] = [:]
    var nodes: [Node]
    /// Calls that can still take effect although no caller waits for their response.
    var late: [Request] = []
    /// Notifications to sessions.
    var notifications: Set<Notification> = []
    var collector = Collector()

    /// The longest content that was reported to a client.
    var reported: [UInt8] = []
    /// The content of each completion of the upload.
    var completed: [[UInt8]] = []
    /// The number of calls of the target resource.
    var targetCalls = 0
    var wasCanceled = false
    /// The entity tag in the final response that a client has got after a publication without a row, or with an unknown
    /// outcome.
    var confirmedTag: Int?
    /// The entity tags of the publications that certainly were not made.
    var failedTags: Set<Int> = []
    /// The first violation of an invariant.
    var violation: String?

    struct Key: Hashable, Comparable {
        var session: Int64
        var number: Int

        static func < (left: Key, right: Key) -> Bool { (left.session, left.number) < (right.session, right.number) }
    }

    struct Piece: Hashable {
        var start: Int
        var size: Int
        var key: Key

        var end: Int { start + size }
    }

    struct Change: Hashable {
        var from: Int
        var pieces: [Piece]
        /// The content after the change, which only the model needs.
        var content: [UInt8]
        var effect = Effect.advance

        var offset: Int { content.count }

        enum Effect: Hashable {
            case advance, remove
            /// The target resource processes the upload from now on.
            case process
            /// Completes the upload, with the entity tag of the published file in the final response.
            case complete(tag: Int?)
        }
    }

    struct Notification: Hashable {
        var receiver: Int64
        var requester: Int64
    }

    struct Collector: Hashable {
        /// The keys that the storage has listed.
        var listed: [Key]?
        /// The keys that nothing needs, according to the database.
        var orphans: [Key]?
        /// Keys of replaced objects.
        var garbage: [Key] = []
    }

    // MARK: Nodes

    struct Node: Hashable {
        /// The process. After a crash it is another one.
        var process = 0
        var openings = 0
        var session = NodeSession(times: ClusterModel.times(nil))
        /// The upload, while the store uses it.
        var memory: Memory?
        /// The call for the upload.
        var work: Call?
        /// The call for the session, or a release.
        var control: Call?
        var releases: [NodeSession.Release] = []
        /// The fence of a use that has ended, and whose hold is not released yet.
        var ending: Int64?
        var short: Short?
        /// The publication of the upload whose response was lost. Its client waits.
        var unconfirmed: Unconfirmed?
        var objectCount = 0
        /// Objects that the node sends in no change any more.
        var unneeded: Set<Key> = []
    }

    struct Unconfirmed: Hashable {
        var tag: Int
        var fence: Int64
    }

    struct Memory: Hashable {
        var fence: Int64
        var content: [UInt8]
        var pieces: [Piece]
        /// Whether the row records that the target resource processes the upload: it can only be completed.
        var isProcessing = false
    }

    /// A short upload without a row.
    enum Short: Hashable {
        case received, succeeded
        /// The outcome of its publication is unknown.
        case unknown(tag: Int)
        /// The client has got 503, and the request has ended.
        case forgotten
    }

    struct Call: Hashable {
        var request: Request
        /// The time of the node.
        var sentAt: Int64
        var response: Response?
    }

    enum Request: Hashable {
        case put(Key, [UInt8], fence: Int64, Change)
        case delete(Key)
        /// Opens a session, ends the earlier sessions of the process, and adopts the upload if it is kept with this
        /// fence.
        case open(process: Int, number: Int, keptFence: Int64?)
        case renew(Int64)
        case resolve(Int64)
        case acquire(Int64, batch: Int64)
        /// Publishes the file of the short upload, and inserts its row.
        case publish(Int64, batch: Int64, tag: Int)
        case confirm(tag: Int)
        /// Looks for the final response of a publication in the row.
        case confirmRow(tag: Int)
        case forget(Int64, batch: Int64)
        /// Records as garbage the given objects that no row names.
        case discard(Int64, batch: Int64, Set<Key>)
        case change(Int64, batch: Int64, fence: Int64, Change)
        case fence(Int64, requesters: Set<Int64>)
        case release(Int64, fence: Int64, requesters: Set<Int64>)
    }

    enum Response: Hashable {
        case done
        case rejected
        case sessionEnded
        case batchEnded
        case missing
        case number(Int64)
        case opened(Int64, adopted: Bool)
        case acquired(Memory)
        case finished([UInt8])
        case heldElsewhere
    }

    /// One tick is a nanosecond.
    static func times(_ mutation: Mutation?) -> NodeSession.Times {
        var times = NodeSession.Times()
        (times.lifetime, times.renewal, times.margin) = (2, 1, mutation == .noMargin ? 0 : 1)
        return times
    }

    /// Two sessions are open. The first one holds the upload, unless that is a short one.
    init(limits: Limits, mutation: Mutation? = nil) {
        self.limits = limits
        self.mutation = mutation
        var node = Node()
        node.session = NodeSession(times: Self.times(mutation))
        nodes = [node, node]
        for (index, end) in [2, limits.secondEnd].enumerated() {
            nodes[index].process = index
            let session = database.openSession(of: index, 0, until: end)
            nodes[index].session.opened(session, sentAt: end - 2)
        }
        if limits.isShort {
            database.row.exists = false
            nodes[0].short = .received
            return
        }
        database.row.holder = 1
        nodes[0].session.acquired(uploadID, Self.hold(1), by: 1)
        nodes[0].memory = Memory(fence: 1, content: [], pieces: [])
    }

    static func hold(_ fence: Int64) -> NodeSession.Hold {
        NodeSession.Hold(fence: fence, blob: "", principal: "")
    }

    /// The clock of a node. The clock of the first one is slow: it loses one tick in the lifetime of a session.
    func clock(_ node: Int) -> Int64 { node == 0 && time >= 1 ? time - 1 : time }

    // MARK: Invariants

    /// Verifies what must be true in every state.
    mutating func verify() {
        // A node can always answer a request from memory. More reports only make the other conditions stronger.
        for node in 0..<2 where usesMemory(node) && isCurrent(node) {
            report(nodes[node].memory?.content ?? [], isNew: true)
        }
        guard violation == nil else { return }
        var content: [UInt8] = []
        for piece in database.pieces {
            guard let object = objects[piece.key], object.count >= piece.size else {
                violation = "a row names an object that does not exist"
                return
            }
            content += object.prefix(piece.size)
        }
        verifyPublication()
        verifyHolds()
        verifySessions()
        guard database.row.exists else { return }
        if content.count != database.row.offset { violation = "the offset is not the end of the pieces" }
        if !content.starts(with: reported) { violation = "reported bytes are lost" }
        if targetCalls > 1 { violation = "the target resource was called twice" }
        if completed.count > 1 { violation = "the upload was completed twice" }
        if let first = completed.first, first != content { violation = "a completed upload has changed" }
    }

    /// Whether the row has the fence with which a node has read it. Otherwise the node does not answer from memory. As long
    /// as nothing sets the clock of the database, this is always so, and the model does not need it.
    private func isCurrent(_ node: Int) -> Bool {
        if limits.clockSteps == 0 || mutation == .readsIgnoreFence { return true }
        return nodes[node].memory?.fence == database.row.fence
    }

    /// Verifies that the database accepts changes by a node that uses the upload.
    private mutating func verifyHolds() {
        for node in 0..<2 where usesMemory(node) && nodes[node].work == nil && nodes[node].session.unresolved.isEmpty {
            guard let memory = nodes[node].memory, database.row.exists, !database.row.isComplete,
                let session = nodes[node].session.number, database.row.holder == session
            else { continue }
            if database.row.fence != memory.fence { violation = "a node holds the upload, but cannot change it" }
        }
    }

    /// Verifies that a node relies on its session only while the session is alive, and that no earlier session of its
    /// process is alive: other nodes would have to wait for its end.
    private mutating func verifySessions() {
        for (index, node) in nodes.enumerated() {
            guard let number = node.session.number else { continue }
            let isAlive = database.sessions[number].map(isAlive) ?? false
            // A renewal would set the end of the second session back if that were later than the usual one.
            let isUsual = limits.clockSteps == 0 && (index == 0 || limits.secondEnd == 2)
            if isUsual, !isAlive, node.session.isAlive(at: clock(index)) {
                violation = "a node relies on a session that has ended"
            }
            let remaining = database.sessions.filter { $0.key < number && $0.value.process == node.process }
            if remaining.values.contains(where: self.isAlive) { violation = "an earlier session of a process is alive" }
        }
    }

    /// Records that a node reports content to a client.
    /// - Parameter isNew: whether the request begins now, so that the offset must not be lower than one reported before.
    ///   Otherwise the response may be late.
    mutating func report(_ content: [UInt8], isNew: Bool) {
        guard violation == nil else { return }
        if isNew && content.count < reported.count {
            violation = "the reported offset decreases"
        } else if !content.starts(with: reported) && !reported.starts(with: content) {
            violation = "reported bytes are different"
        } else if content.count > reported.count {
            reported = content
        }
    }
}
