import SystemCalls

/// Work that takes little longer for many requests than for one, such as a synchronization. The first thread that adds
/// a request does the work; the requests that other threads add meanwhile are served together, by one of these threads.
/// So each thread waits only for the outcome of its own requests, and no request is passed to a thread that does
/// nothing else.
package final class SharedWork<Request: Sendable, Outcome: Sendable>: Sendable {
    /// The requests of a thread that waits.
    private final class Waiter: Sendable {
        enum State {
            case waiting
            /// The thread has to serve all waiting requests.
            case leads
            case ended([Outcome])
        }

        let requests: [Request]
        private let state = Monitor(State.waiting)

        init(_ requests: [Request]) { self.requests = requests }

        func set(_ next: State) {
            state.withLock { $0 = next }
            state.notifyAll()
        }

        /// - Returns: the outcomes; nil if this thread leads.
        func wait() -> [Outcome]? {
            state.waitForever { state -> [Outcome]?? in
                switch state {
                case .waiting: nil
                case .leads: .some(nil)
                case .ended(let outcomes): outcomes
                }
            }
        }
    }

    private struct State {
        var waiters: [Waiter] = []
        /// Whether a thread serves requests, or is about to do so.
        var isBusy = false
        /// The number of requests that are served or were served.
        var begun = 0
        var isClosed = false
    }

    private enum Turn {
        case leads
        case waits(Waiter)
        case isClosed
    }

    private let state = Monitor(State())

    package init() {}

    /// Serves requests, together with those of other threads.
    /// - Parameters:
    ///   - begin: begins to serve requests. One thread at a time calls it.
    ///   - end: returns the outcome of each request, in the same order. Meanwhile another thread may call `begin`.
    /// - Returns: the outcome of each request; nil if ``close()`` was called before.
    package func run<Begun>(
        _ requests: [Request], by begin: ([Request]) -> Begun, then end: (Begun) -> [Outcome]
    ) -> [Outcome]? {
        let turn = state.withLock { state -> Turn in
            if state.isClosed { return .isClosed }
            let waiter = Waiter(requests)
            state.waiters.append(waiter)
            defer { state.isBusy = true }
            return state.isBusy ? .waits(waiter) : .leads
        }
        switch turn {
        case .isClosed: return nil
        case .leads: break
        case .waits(let waiter): if let outcomes = waiter.wait() { return outcomes }
        }
        // The requests of this thread are the oldest.
        var own: [Outcome]?
        for count in 1... {
            // Other threads that are ready to run can now add requests, which are then served together with these.
            WorkerThread.yieldProcessor()
            let waiters = takeWaiters()
            let started = SystemClock.monotonicNanoseconds()
            let begun = begin(waiters.count == 1 ? waiters[0].requests : waiters.flatMap(\.requests))
            let continues = SystemClock.monotonicNanoseconds() - started < Self.quickTime && count < Self.maxBatches
            let isLast = !(continues && isNeeded)
            if isLast { passOn() }
            var outcomes = end(begun)[...]
            for waiter in waiters {
                let part = Array(outcomes.prefix(waiter.requests.count))
                outcomes = outcomes.dropFirst(part.count)
                if own == nil { own = part } else { waiter.set(.ended(part)) }
            }
            if isLast { break }
        }
        return own
    }

    /// Serves requests whose outcomes are known when `work` returns.
    package func run(_ requests: [Request], by work: ([Request]) -> [Outcome]) -> [Outcome]? {
        run(requests, by: work, then: { $0 })
    }

    /// The maximum number of batches that one thread begins. After a batch whose begin took longer than `quickTime`
    /// nanoseconds, another thread continues: waking that thread takes little time then.
    private static var maxBatches: Int { 8 }
    private static var quickTime: Int64 { 300_000 }

    private var isNeeded: Bool { state.withLock { !$0.waiters.isEmpty } }

    private func takeWaiters() -> [Waiter] {
        state.withLock { state in
            defer { state.waiters = [] }
            state.begun += state.waiters.reduce(0) { $0 + $1.requests.count }
            return state.waiters
        }
    }

    /// Makes the thread that waits longest the next one that serves requests.
    private func passOn() {
        let next = state.withLock { state -> Waiter? in
            state.isBusy = !state.waiters.isEmpty
            return state.waiters.first
        }
        if let next { next.set(.leads) } else { state.notifyAll() }
    }

    /// The number of requests that are served or were served, and the number of waiting requests.
    package var counts: (begun: Int, waiting: Int) {
        state.withLock { state in (state.begun, state.waiters.reduce(0) { $0 + $1.requests.count }) }
    }

    package var isClosed: Bool { state.withLock { $0.isClosed } }

    /// Rejects all later requests, and waits for those that were added before.
    /// - Returns: whether this is the first call.
    package func close() -> Bool {
        let isFirst = state.withLock { state in
            defer { state.isClosed = true }
            return !state.isClosed
        }
        state.waitForever { state -> Void? in state.isBusy ? nil : () }
        return isFirst
    }
}

/// The number of times that a directory or the file system could not be made durable since the store was opened.
///
/// Linux reports a failed write only once for each open file description, and it writes the changes of several threads
/// in one directory together. If fsync(2) fails for one thread, the changes of other threads may be lost, too. So a
/// successful fsync(2) proves that a change is durable only if no synchronization of a directory has failed since the
/// change was made.
package struct SynchronizationEpoch: Sendable, Hashable {
    var failures: Int

    package init(failures: Int = 0) { self.failures = failures }
}

/// Synchronizes the directories of a blob area, and records which of them may be lost.
final class DirectorySynchronization: Sendable {
    private enum Entry {
        /// The entry is not durable yet. A later synchronization makes it durable.
        case unconfirmed
        /// A synchronization failed before the entry was durable. A later success does not prove that the entry is
        /// durable, until the directory is created again.
        case lost
    }

    private struct State {
        var failures = 0
        /// The directories that were made since the store was opened, until their entries are durable.
        var made: [PublishedName.Directory: Entry] = [:]
    }

    /// The synchronizations of one directory, of which one at a time runs.
    private struct Turns {
        /// The number of threads that use this value.
        var users = 0
        /// The number of synchronizations that have begun.
        var begun = 0
        var isRunning = false

        var ended: Int { isRunning ? begun - 1 : begun }
    }

    private let state = Monitor(State())
    /// The key is the inode of the directory: all directories of an area are in one file system.
    private let turns = Monitor<[UInt64: Turns]>([:])

    var epoch: SynchronizationEpoch { state.withLock { SynchronizationEpoch(failures: $0.failures) } }

    /// Returns once the changes in a directory are on stable storage.
    /// - Parameters:
    ///   - epoch: the epoch from before the directory was changed.
    ///   - child: a directory whose entry is one of the changes.
    ///   - synchronize: makes the entries of the directory durable.
    /// - Throws: the error of `synchronize`; `EIO` if a synchronization by another thread has failed since `epoch`.
    func synchronize(
        since epoch: SynchronizationEpoch, confirming child: PublishedName.Directory? = nil,
        _ synchronize: () throws(Errno) -> Void
    ) throws(Errno) {
        do throws(Errno) { try synchronize() } catch {
            // The count and the entries are changed in one step, so that a thread that reads the epoch after this
            // failure also finds the lost directories.
            state.withLock { state in
                state.failures += 1
                state.made = state.made.mapValues { _ in .lost }
            }
            throw error
        }
        try state.withLock { (state) throws(Errno) in
            if state.failures != epoch.failures { throw .inputOutput }
            if let child { state.made[child] = nil }
        }
    }

    /// Returns once the changes in an open directory are on stable storage. Threads that call this at the same time
    /// share synchronizations: each needs one that begins after its call.
    func synchronize(_ directory: FileDescriptor, since epoch: SynchronizationEpoch) throws(Errno) {
        let inode = try directory.status().inode
        try synchronizeTogether(inode, since: epoch) { () throws(Errno) in try directory.synchronize() }
    }

    /// - Parameters:
    ///   - inode: the directory.
    ///   - synchronize: makes its entries durable.
    func synchronizeTogether(
        _ inode: UInt64, since epoch: SynchronizationEpoch, _ synchronize: () throws(Errno) -> Void
    ) throws(Errno) {
        let goal = turns.withLock { turns in
            turns[inode, default: Turns()].users += 1
            return turns[inode, default: Turns()].begun + 1
        }
        defer { leaveTurns(of: inode) }
        let isShared = turns.waitForever { turns -> Bool? in
            guard var directory = turns[inode] else { return nil }
            if directory.ended >= goal { return true }
            if directory.isRunning { return nil }
            directory.begun += 1
            directory.isRunning = true
            turns[inode] = directory
            return false
        }
        if isShared {
            // The other thread has counted its failure before its turn ended.
            try self.synchronize(since: epoch) { () throws(Errno) in }
        } else {
            defer {
                turns.withLock { $0[inode]?.isRunning = false }
                turns.notifyAll()
            }
            try self.synchronize(since: epoch, synchronize)
        }
    }

    /// Whether no thread synchronizes a directory, and nothing is kept for any directory.
    var isIdle: Bool { turns.withLock { $0.isEmpty } }

    /// The number of threads that synchronize a directory or wait for that.
    func users(of inode: UInt64) -> Int { turns.withLock { $0[inode]?.users ?? 0 } }

    private func leaveTurns(of inode: UInt64) {
        turns.withLock { turns in
            turns[inode]?.users -= 1
            if turns[inode]?.users == 0 { turns[inode] = nil }
        }
    }

    /// Makes a directory unless it exists. A directory whose entry was lost is removed first.
    /// - Parameters:
    ///   - make: returns false if the directory exists.
    ///   - remove: removes an empty directory.
    /// - Throws: `EIO` if the entry was lost and the directory cannot be removed because it is not empty.
    func make(
        _ directory: PublishedName.Directory, _ make: () throws(Errno) -> Bool,
        remove: (PublishedName.Directory) throws(Errno) -> Void
    ) throws(Errno) {
        try state.withLock { (state) throws(Errno) in
            if state.made[directory] == .lost { try Self.removeLost(directory, &state, remove) }
            if try make() { state.made[directory] = .unconfirmed }
        }
    }

    /// Removes a directory, and the directories below it, if their entries were lost. If that fails, the next
    /// ``make(_:_:remove:)`` tries again.
    func removeLost(_ directory: PublishedName.Directory, _ remove: (PublishedName.Directory) throws(Errno) -> Void) {
        state.withLock { state in _ = try? Self.removeLost(directory, &state, remove) }
    }

    private static func removeLost(
        _ directory: PublishedName.Directory, _ state: inout State,
        _ remove: (PublishedName.Directory) throws(Errno) -> Void
    ) throws(Errno) {
        let lost = state.made.filter { $0.value == .lost && $0.key.segments.starts(with: directory.segments) }
        for next in lost.keys.sorted(by: { $0.segments.count > $1.segments.count }) {
            do throws(Errno) { try remove(next) } catch { if error != .noSuchFile { throw .inputOutput } }
            state.made[next] = nil
        }
    }
}
