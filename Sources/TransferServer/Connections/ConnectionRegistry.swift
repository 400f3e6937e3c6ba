import SystemCalls

/// The open connections of a server. The registry closes connections that exceed their timeouts.
///
/// The timeout of libmicrohttpd is not used: it only measures inactivity, and polls without a pause in its last second.
final class ConnectionRegistry: Sendable {
    private struct Entries {
        var open: [ObjectIdentifier: ConnectionEntry] = [:]
        /// The connections of `open` that were not closed to make room for others.
        var table = ConnectionTable<ObjectIdentifier>()
        var isDraining = false
        var isStopped = false
        /// Whether `drain` must end now, without waiting for responses.
        var shouldDrainNow = false
    }

    private let timeouts: ConnectionTimeouts
    private let entries = Monitor(Entries())

    private let capacity: Int

    /// - Parameter capacity: the maximum number of open connections.
    init(timeouts: ConnectionTimeouts, capacity: Int) {
        self.timeouts = timeouts
        self.capacity = capacity
    }

    /// The maximum number of closed connections whose threads have not ended yet. At this number new connections are
    /// rejected, because the threads are stuck and must not accumulate.
    static func maxClosing(capacity: Int) -> Int { max(64, capacity) }

    /// The result of ``admit(_:)``.
    enum Admission {
        case served
        /// The limit was reached. `closed` connections were closed for the new one, which is served unless `isRejected`.
        case limited(closed: Int, isRejected: Bool, largest: (client: ConnectionClient, count: Int)?)
    }

    /// Decides whether a new connection of `client` is served. If there are too many connections, it closes another
    /// one.
    func admit(_ client: @autoclosure () -> ConnectionClient) -> Admission {
        var closed: [ConnectionEntry] = []
        let admission = entries.withLock { entries -> Admission in
            guard entries.table.count >= capacity else { return .served }
            let largest = entries.table.largestClient
            var isRejected = entries.open.count - entries.table.count >= Self.maxClosing(capacity: capacity)
            let (client, now) = (client(), SystemClock.monotonicNanoseconds())
            // Several listeners may have admitted connections at the same time.
            while !isRejected && entries.table.count >= capacity {
                switch entries.table.makeRoom(
                    for: client, at: now, measure: { entries.open[$0]?.transferredBytes() ?? 0 })
                {
                case .reject: isRejected = true
                case .close(let id): entries.open[id].map { closed.append($0) }
                }
            }
            return .limited(closed: closed.count, isRejected: isRejected, largest: largest)
        }
        for entry in closed { entry.close(reason: .tooMany) }
        return admission
    }

    /// Adds a connection that was admitted.
    func add(_ entry: ConnectionEntry) {
        entries.withLock {
            $0.open[ObjectIdentifier(entry)] = entry
            $0.table.insert(ObjectIdentifier(entry), of: entry.peerClient, at: SystemClock.monotonicNanoseconds())
        }
    }

    /// Counts a connection for the client of its current request.
    func count(_ entry: ConnectionEntry, for client: ConnectionClient) {
        let bytes = entry.transferredBytes()
        entries.withLock {
            $0.table.move(
                ObjectIdentifier(entry), to: client, at: SystemClock.monotonicNanoseconds(), bytes: bytes)
        }
    }

    func remove(_ entry: ConnectionEntry) {
        entry.descriptorWillClose()
        entries.withLock {
            $0.open[ObjectIdentifier(entry)] = nil
            $0.table.remove(ObjectIdentifier(entry))
        }
        entries.notifyAll()
    }

    /// Closes all connections except those whose response is being produced or sent. Waits for these until the deadline
    /// (monotonic nanoseconds), and then closes them, too.
    func drain(until deadline: Int64) {
        entries.withLock { $0.isDraining = true }
        repeat {
            for entry in snapshot() { entry.closeUnlessResponding() }
        } while !isEmpty(by: min(deadline, SystemClock.monotonicNanoseconds() + 50_000_000))
            && SystemClock.monotonicNanoseconds() < deadline && !entries.withLock { $0.shouldDrainNow }
        for entry in snapshot() { entry.close(reason: .stopping) }
    }

    /// Makes ``drain(until:)`` close all connections now.
    func drainNow() { entries.withLock { $0.shouldDrainNow = true } }

    /// The number of open connections.
    var count: Int { entries.withLock { $0.open.count } }

    /// Checks the timeouts of all connections until `stop()`: one to four times a second, depending on the shortest
    /// timeout.
    func reap() {
        while waitUnlessStopped(nanoseconds: timeouts.checkInterval) {
            let now = SystemClock.monotonicNanoseconds()
            for entry in snapshot() { entry.close(ifOverdue: timeouts, now: now) }
        }
    }

    /// Waits for this time, or until the server stops.
    /// - Returns: `false` if the server stops.
    func waitUnlessStopped(nanoseconds: Int64) -> Bool {
        let deadline = SystemClock.monotonicNanoseconds() + nanoseconds
        return entries.wait(until: deadline) { $0.isStopped ? true : nil } == nil
    }

    /// Resets the state before a start, also after a failed one.
    func prepareStart() { entries.withLock { $0.isStopped = false } }

    func stop() {
        entries.withLock { $0.isStopped = true }
        entries.notifyAll()
    }

    private func snapshot() -> [ConnectionEntry] { entries.withLock { Array($0.open.values) } }

    private func isEmpty(by deadline: Int64) -> Bool {
        entries.wait(until: deadline) { $0.open.isEmpty ? true : nil } ?? false
    }
}

/// The open connections by client, and the decision which one is closed when a new connection exceeds the limit.
///
/// The closed connection is the one with the lowest rate among those of the client with the most connections. The rate
/// is the number of bytes transferred in both directions for each second of the connection's age. The new connection is
/// counted for its client. So if this client has the most connections, one of its own connections is closed or the new
/// one is rejected: the client cannot displace the connections of others. If several clients have the same largest
/// number of connections, the connections of all of them are compared.
///
/// ``credit`` is added to the bytes of every connection. So a new connection has a rate of ``credit`` bytes per second:
/// it replaces a connection with a lower rate, and is rejected if none of the connections that it is compared with has
/// a lower rate.
///
/// The table makes no system calls: times and byte counts are parameters.
struct ConnectionTable<ID: Hashable> {
    /// The decision about a new connection if the limit is reached.
    enum Decision: Equatable {
        /// The new connection is not served.
        case reject
        /// This connection is closed, and the new one is served.
        case close(ID)
    }

    private struct Row {
        let id: ID
        /// The time in monotonic nanoseconds from which on the connection is counted for this client.
        let since: Int64
        /// The bytes that the connection had transferred at that time.
        let initialBytes: Int64
        /// The bytes that the connection had transferred at the last measurement; the current number is at least as
        /// large.
        var bytes: Int64

        func rate(at now: Int64) -> Double { ConnectionTable.rate(bytes: bytes - initialBytes, age: now - since) }
    }

    /// A client and its connections.
    private struct Group {
        let client: ConnectionClient
        let isExempt: Bool
        var rows: [Row] = []
    }

    private struct Place {
        let client: ConnectionClient
        var row: Int
    }

    private var groups: [Group] = []
    /// The index of each client in `groups`.
    private var indices: [ConnectionClient: Int] = [:]
    private var places: [ID: Place] = [:]
    /// The number of connections that are not exempt.
    private var closable = 0

    /// The number that is added to the bytes of each connection, because the head of a request needs time to arrive.
    static var credit: Int64 { 1024 }

    /// The rate in bytes per second by which connections are compared.
    static func rate(bytes: Int64, age: Int64) -> Double {
        Double(bytes + credit) / (Double(max(0, age)) / 1e9 + 1)
    }

    /// The number of counted connections.
    var count: Int { places.count }

    /// The client with the most connections, and how many it has; `nil` if there is none.
    var largestClient: (client: ConnectionClient, count: Int)? {
        groups.indices.max { groups[$0].rows.count < groups[$1].rows.count }
            .map { (groups[$0].client, groups[$0].rows.count) }
    }

    /// Counts a connection for a client, and no longer for its previous client.
    /// - Parameters:
    ///   - now: monotonic nanoseconds.
    ///   - bytes: the bytes that the connection has transferred so far.
    mutating func insert(_ id: ID, of client: ConnectionClient, at now: Int64, bytes: Int64 = 0) {
        remove(id)
        let index = indices[client] ?? groups.count
        if index == groups.count {
            groups.append(Group(client: client, isExempt: client.isExempt))
            indices[client] = index
        }
        places[id] = Place(client: client, row: groups[index].rows.count)
        groups[index].rows.append(Row(id: id, since: now, initialBytes: bytes, bytes: bytes))
        if !client.isExempt { closable += 1 }
    }

    /// Counts a connection for another client.
    mutating func move(_ id: ID, to client: ConnectionClient, at now: Int64, bytes: Int64) {
        guard let place = places[id], place.client != client else { return }
        insert(id, of: client, at: now, bytes: bytes)
    }

    mutating func remove(_ id: ID) {
        guard let place = places.removeValue(forKey: id), let index = indices[place.client] else { return }
        if !place.client.isExempt { closable -= 1 }
        // The last element moves to the free index, in the group and among the groups.
        let last = groups[index].rows.removeLast()
        if last.id != id {
            groups[index].rows[place.row] = last
            places[last.id]?.row = place.row
        }
        guard groups[index].rows.isEmpty else { return }
        indices[place.client] = nil
        let lastGroup = groups.removeLast()
        if index < groups.count {
            groups[index] = lastGroup
            indices[lastGroup.client] = index
        }
    }

    /// Decides which connection is closed for a new connection, and removes the closed connection from the table.
    ///
    /// - Parameters:
    ///   - now: monotonic nanoseconds.
    ///   - measure: returns the bytes that a connection has transferred so far. It is called only for connections that
    ///     may be the slowest according to their last measurement, which are usually few.
    mutating func makeRoom(for newClient: ConnectionClient, at now: Int64, measure: (ID) -> Int64) -> Decision {
        // Exempt connections are compared only if no other connections are open.
        let isExempt = closable == 0
        var highest = 0
        for group in groups.indices where groups[group].isExempt == isExempt {
            highest = max(highest, groups[group].rows.count)
        }
        let own = indices[newClient]
        let competes = isExempt || !newClient.isExempt
        let ownCount = competes ? 1 + (own.map { groups[$0].rows.count } ?? 0) : 0
        let compared = groups.indices.filter { group in
            guard groups[group].isExempt == isExempt else { return false }
            return group == own
                ? ownCount >= highest : groups[group].rows.count == highest && ownCount <= highest
        }
        // The new connection is compared, too, if no other client would have more connections than its client.
        var lowest = ownCount >= highest ? Self.rate(bytes: 0, age: 0) : .infinity
        var slowest: ID?
        func consider(_ group: Int, _ row: Int) {
            let id = groups[group].rows[row].id
            groups[group].rows[row].bytes = max(groups[group].rows[row].bytes, measure(id))
            let rate = groups[group].rows[row].rate(at: now)
            if rate < lowest { (slowest, lowest) = (id, rate) }
        }
        // The rate according to the last measurement is never higher than the current rate. So the connection for which
        // the former is lowest is measured first. Then a connection is measured only if its rate according to the last
        // measurement is below the lowest current rate that was found before.
        var first: (group: Int, row: Int)?
        var lowestKnown = lowest
        for group in compared {
            for row in groups[group].rows.indices {
                let known = groups[group].rows[row].rate(at: now)
                if known < lowestKnown { (first, lowestKnown) = ((group, row), known) }
            }
        }
        guard let first else { return .reject }
        consider(first.group, first.row)
        for group in compared {
            for row in groups[group].rows.indices where groups[group].rows[row].rate(at: now) < lowest {
                consider(group, row)
            }
        }
        guard let slowest else { return .reject }
        remove(slowest)
        return .close(slowest)
    }
}

/// Checks whether the average rate in consecutive windows is below a minimum.
struct RateWindow: Sendable {
    /// The start of the current window; `nil` if a window starts with the next call.
    private var start: (bytes: Int64, nanoseconds: Int64)?

    /// - Parameters:
    ///   - bytes: the bytes transferred so far.
    ///   - nanoseconds: the time so far in which the peer could transfer them.
    ///   - minimum: bytes per second.
    ///   - length: the length of a window in seconds.
    mutating func isTooSlow(bytes: Int64, nanoseconds: Int64, minimum: Int64, length: Int64) -> Bool {
        guard let begun = start else {
            start = (bytes, nanoseconds)
            return false
        }
        guard nanoseconds - begun.nanoseconds >= length * 1_000_000_000 else { return false }
        start = (bytes, nanoseconds)
        let (wanted, overflow) = minimum.multipliedReportingOverflow(by: length)
        return overflow || bytes - begun.bytes < wanted
    }
}
