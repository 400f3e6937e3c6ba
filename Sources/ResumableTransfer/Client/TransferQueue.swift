import SystemCalls

/// Decides which transfers of a client run: at most a given number of them at the same time, in the order of their
/// priority, then of their arrival.
final class TransferQueue: Sendable {
    private struct Place: Comparable {
        var priority: TaskPriority
        let arrival: Int
        let transfer: ObjectIdentifier

        /// The lowest place is the last one to run.
        static func < (left: Place, right: Place) -> Bool {
            left.priority == right.priority ? left.arrival > right.arrival : left.priority < right.priority
        }

        static func == (left: Place, right: Place) -> Bool { left.arrival == right.arrival }
    }

    private struct State {
        var running: Set<ObjectIdentifier> = []
        /// The places of the waiting transfers in ascending order: the last one runs next.
        var waiting: [Place] = []
        var places: [ObjectIdentifier: Place] = [:]
        var waits: [ObjectIdentifier: CheckedContinuation<Void, Never>] = [:]
        var arrivals = 0
        var isClosed = false

        mutating func insert(_ place: Place) {
            waiting.insert(place, at: index(of: place))
            places[place.transfer] = place
        }

        mutating func removePlace(of transfer: ObjectIdentifier) -> Place? {
            guard let place = places.removeValue(forKey: transfer) else { return nil }
            waiting.remove(at: index(of: place))
            return place
        }

        /// The index of `place`, or the index at which it has to be inserted.
        private func index(of place: Place) -> Int {
            var range = waiting.indices
            while !range.isEmpty {
                let middle = range.lowerBound + range.count / 2
                range = waiting[middle] < place ? middle + 1..<range.upperBound : range.lowerBound..<middle
            }
            return range.lowerBound
        }
    }

    private let limit: Int
    private let state = Monitor(State())

    /// - Parameter limit: the maximum number of transfers that run at the same time, at least 1; `nil`: no limit.
    init(limit: Int?) { self.limit = limit.map { max($0, 1) } ?? .max }

    /// Adds a transfer, which runs immediately if the limit allows it.
    func add(_ transfer: ObjectIdentifier, priority: TaskPriority) {
        state.withLock { state in
            state.arrivals += 1
            state.insert(Place(priority: priority, arrival: state.arrivals, transfer: transfer))
        }
        admit()
    }

    /// Whether a transfer waits for its turn.
    func isWaiting(_ transfer: ObjectIdentifier) -> Bool { state.withLock { $0.places[transfer] != nil } }

    /// Waits until a transfer runs, or is removed.
    func wait(_ transfer: ObjectIdentifier) async {
        await withCheckedContinuation { continuation in
            let isWaiting = state.withLock { state in
                let isWaiting = state.places[transfer] != nil
                if isWaiting { state.waits[transfer] = continuation }
                return isWaiting
            }
            if !isWaiting { continuation.resume() }
        }
    }

    /// Changes the priority of a transfer that waits.
    func setPriority(_ priority: TaskPriority, of transfer: ObjectIdentifier) {
        state.withLock { state in
            guard var place = state.removePlace(of: transfer) else { return }
            place.priority = priority
            state.insert(place)
        }
    }

    /// Removes a transfer that has ended, or that no longer waits. Has no effect if it was removed before.
    func remove(_ transfer: ObjectIdentifier) {
        let wait = state.withLock { state in
            state.running.remove(transfer)
            _ = state.removePlace(of: transfer)
            return state.waits.removeValue(forKey: transfer)
        }
        wait?.resume()
        admit()
    }

    /// Prevents waiting transfers from starting. Each of them waits until it is removed.
    func close() { state.withLock { $0.isClosed = true } }

    private func admit() {
        let admitted = state.withLock { state in
            var admitted: [CheckedContinuation<Void, Never>] = []
            while !state.isClosed, state.running.count < limit, let next = state.waiting.popLast() {
                state.places[next.transfer] = nil
                state.running.insert(next.transfer)
                if let wait = state.waits.removeValue(forKey: next.transfer) { admitted.append(wait) }
            }
            return admitted
        }
        for wait in admitted { wait.resume() }
    }
}
