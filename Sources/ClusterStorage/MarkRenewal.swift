/// Decides when a process changes the mark of its database in the object storage, and whether it may delete objects. It
/// is a value type with one method for each event: it reads no clock, and does no I/O.
///
/// A copy of a database, such as a restored dump, has the same identity, and could delete the objects that were stored
/// after it was made. So the servers change a random *mark* every few minutes: one of them adds the next mark to the
/// database and stores it later in the object ``PieceCollector/identityKey``. A database keeps its last marks. It knows
/// none that was added to another copy, so a process that finds an unknown mark in the object stops using the storage.
/// No process replaces an unknown mark, so of two copies that both add marks at most one can continue. The rules:
///
/// - A mark is stored after it is in the database, so an interruption between both leaves a known mark in the object.
///   It is stored ``Times/confirmation`` later: if a failover to a standby server loses the last changes, the mark is
///   lost before it is in the object.
/// - A process stores a mark only after it has found known marks for ``Times/observation``. If the servers of the
///   original database have been running during this time, they have stored a mark that a new copy does not know. So
///   the copy ends, and not the original.
/// - A process may delete objects ``Times/confirmation`` after it first found a mark in the object that was added after
///   its start, and if the object still has a known mark. From then on no process of an earlier copy can change the
///   object: it would find this mark, or a later one, and a request that it has sent before has ended. This does not
///   need conditions of the storage.
///
/// If two copies differ in nothing yet, for example because no server has run since the copy was made, each can become
/// the owner, but not both.
package struct MarkRenewal: Sendable, Hashable {
    /// Times in nanoseconds.
    package struct Times: Sendable, Hashable {
        /// Longer than the time in which the servers of one database change the mark twice.
        package var observation: Int64
        /// Longer than the time from reading the object to the end of the request that stores the next mark.
        package var confirmation: Int64

        package init(observation: Int64 = 300_000_000_000, confirmation: Int64 = 60_000_000_000) {
            (self.observation, self.confirmation) = (observation, confirmation)
        }
    }

    package enum Step: Sendable, Hashable {
        case wait
        /// Add a mark after the last one to the database.
        case add
        /// Store the last mark of the database in the object.
        case store
    }

    private let times: Times
    /// The time at which this process first found a known mark, and the number of the last mark that the database had
    /// at this time.
    private var startedAt: Int64?
    private var lastAtStart: Int64 = 0
    /// The number of the last mark of the database, and the time since which this process knows it.
    private var last: Int64 = 0
    private var lastSince: Int64 = 0
    /// The time at which this process first found a mark in the object that was added after ``startedAt``.
    private var renewedAt: Int64?

    package init(times: Times = Times()) { self.times = times }

    /// Records that the object has a known mark.
    /// - Parameters:
    ///   - number: the number of this mark.
    ///   - newest: the number of the last mark in the database.
    ///   - now: monotonic nanoseconds.
    package mutating func found(_ number: Int64, last newest: Int64, at now: Int64) -> Step {
        if startedAt == nil { (startedAt, lastAtStart) = (now, newest) }
        if last != newest { (last, lastSince) = (newest, now) }
        if number > lastAtStart, renewedAt == nil { renewedAt = now }
        if number == newest { return .add }
        let isDue = now - (startedAt ?? now) >= times.observation && now - lastSince >= times.confirmation
        return isDue ? .store : .wait
    }

    /// Records that the object has an unknown mark, or none.
    package mutating func foundNone() { self = MarkRenewal(times: times) }

    /// Whether objects may be deleted now, if the object had a known mark just before.
    package func allowsDeletion(at now: Int64) -> Bool { renewedAt.map { now - $0 >= times.confirmation } ?? false }
}
