import Foundation
import HTTPSemantics
import HTTPTransport
import ResumableUpload
import SystemCalls

/// Uploads and downloads that resume where they were interrupted.
///
/// All transfers of a client share one thread for their connections. A transfer has a strong reference to its client.
public final class TransferClient: Sendable {
    /// The configuration of all transfers of this client.
    public let configuration: Configuration
    let engine: any Transport
    let storage: TransferStorage
    let servers = ServerTraits()
    let queue: TransferQueue
    let clientEvents = ClientEvents()
    /// Refreshes credentials; `nil` if the configuration has no closure for that.
    let credentials: CredentialRefresh?

    private struct State {
        var isShutDown = false
        /// The transfers that have started and not ended, numbered in the order in which they were started.
        var transfers: [ObjectIdentifier: (transfer: any DrivenTransfer, number: Int)] = [:]
        var started = 0

        var inOrder: [any DrivenTransfer] { transfers.values.sorted { $0.number < $1.number }.map(\.transfer) }
    }

    private let state = Monitor(State())
    private let lastURI = Monitor<(text: String, uri: RequestURI)?>(nil)

    /// Creates a client with a thread for its connections.
    /// - Parameter configuration: the settings of all transfers.
    public convenience init(_ configuration: Configuration = .init()) {
        self.init(configuration, engine: TransportEngine())
    }

    init(_ configuration: Configuration, engine: any Transport) {
        self.configuration = configuration
        self.engine = engine
        storage = TransferStorage(path: configuration.storagePath)
        queue = TransferQueue(limit: configuration.maxTransfers)
        credentials = configuration.refreshCredentials.map { CredentialRefresh($0) }
    }

    deinit {
        clientEvents.finish()
        engine.shutDown()
    }

    /// Pauses all transfers at the same time, waits until their work has ended, and closes all connections. Transfers
    /// that are started later fail with the code `shutDown`. To resume the paused ones, create another client.
    public func shutDown() async {
        let running = state.withLock { state in
            state.isShutDown = true
            return state.inOrder
        }
        queue.close()
        for transfer in running { transfer.requestPause() }
        for transfer in running { _ = await transfer.pause() }
        credentials?.cancel()
        clientEvents.finish()
        let engine = engine
        await BlockingWork.run { engine.shutDown() }
    }

    /// Discards the transfer of `data`: deletes the upload resource from the server, or the partial file of a download
    /// from the disk. It is no error if the resource or the file no longer exists.
    /// - Parameters:
    ///   - data: the resume data of an upload or a download.
    ///   - request: replaces the request in the data; its fields and the user in its URI authorize the deletion of an
    ///     upload.
    /// - Returns: whether the deletion is confirmed; `false`: the upload does not exist on the server, or the
    ///   credentials of the request are those of another user.
    /// - Throws: an error if the deletion failed; the data can then be used as before.
    @discardableResult
    public func discard(_ data: ResumeData, request: TransferRequest? = nil) async throws(TransferError) -> Bool {
        try await discard(data, request: request, handler: nil)
    }

    /// Does the same as ``discard(_:request:)``, with a handler for the exchanges.
    @discardableResult
    package func discard(
        _ data: ResumeData, request: TransferRequest?, handler: (any ExchangeHandler)?
    ) async throws(TransferError) -> Bool {
        switch data.record.content {
        case .upload:
            let plan = try TransferPlan(discarding: data, request: request)
            return try await Upload(TransferParts(self, plan, handler: handler)).discard()
        case .download(let checkpoint):
            let claim = try await claim(
                data.record.id, generation: data.record.generation, hasTicket: data.record.hasTicket)
            try storage.discard(checkpoint)
            claim?.remove()
            return true
        }
    }

    /// Whether the server sent a 104 response for the last creation at the origin of this URI. This is kept for five
    /// minutes; `nil` if it is unknown.
    package func hasAnnouncedUploads(to uri: String) -> Bool? {
        parsed(uri).flatMap { servers.hasAnnouncedUploads($0) }
    }

    /// The parsed URI of a request; `nil` if it is not an absolute http or https URI. Many uploads often have the same
    /// one.
    func parsed(_ text: String) -> RequestURI? {
        if let last = lastURI.withLock({ $0 }), last.text == text { return last.uri }
        guard let uri = RequestURI(text) else { return nil }
        lastURI.withLock { $0 = (text, uri) }
        return uri
    }

    // MARK: For transfers

    /// Registers a transfer that starts. Returns false if it must not start because the client was shut down.
    func register(_ transfer: any DrivenTransfer) -> Bool {
        state.withLock { state in
            if state.isShutDown { return false }
            state.started += 1
            state.transfers[ObjectIdentifier(transfer)] = (transfer, state.started)
            queue.add(ObjectIdentifier(transfer), priority: transfer.priority)
            return true
        }
    }

    func unregister(_ transfer: ObjectIdentifier) {
        queue.remove(transfer)
        _ = state.withLock { $0.transfers.removeValue(forKey: transfer) }
    }

    var registered: [any Transfer] { state.withLock { $0.inOrder } }

    /// Waits until a transfer may run. After a stop request the transfer need not wait: it ends, or only deletes the
    /// upload.
    /// - Parameter willWait: called before the wait, unless a stop was requested.
    func waitForTurn<Value>(
        _ transfer: ObjectIdentifier, _ control: TransferControl<Value>, _ progress: TransferProgress,
        willWait: () -> Void
    ) async {
        let queue = queue
        guard queue.isWaiting(transfer) else { return }
        progress.setWaiting(true)
        if control.stop == nil { willWait() }
        await control.interruptible(by: { queue.remove(transfer) }, while: { await queue.wait(transfer) })
        progress.setWaiting(false)
    }

    /// Claims a transfer, so that no other one can use the same resume data. A resumed transfer is claimed before all
    /// of its other work, a new one before its first checkpoint is passed to the caller.
    func claim(_ id: UUID, generation: Int, hasTicket: Bool) async throws(TransferError) -> TicketClaim? {
        guard hasTicket || configuration.shouldIssueTickets else { return nil }
        let storage = storage
        return try await BlockingWork.run {
            Result { () throws(TransferError) in
                try storage.claim(ResumeTicket(id: id, generation: generation), hasTicket: hasTicket)
            }
        }.get()
    }

    /// Returns the ticket for resume data that is about to be passed to the caller; `nil` if the client issues no
    /// tickets.
    func issueTicket(for id: UUID, generation: Int) -> ResumeTicket? {
        configuration.shouldIssueTickets ? storage.issueTicket(for: id, generation: generation) : nil
    }
}

extension TransferClient {
    /// Returns the request that is sent. Only a request to the origin that the caller named gets credentials and the
    /// fields that `authorize` adds.
    ///
    /// - Parameters:
    ///   - uri: the URI of the request; `nil` if it is not an absolute http or https URI.
    ///   - target: the URI that the caller named. Redirections and resume data may lead to another origin.
    ///   - limit: the maximum time for `authorize` after a stop request; `nil`: a stop request cancels it.
    ///   - restore: restores the parts that `authorize` must not change.
    /// - Throws: `authorizationFailed` if `authorize` fails, or is canceled because a stop was requested.
    func outgoing<Value>(
        _ request: TransferRequest, to uri: RequestURI?, hasCredentials: Bool, target: RequestURI?,
        control: TransferControl<Value>, limit: Duration? = nil, restore: (inout TransferRequest) -> Void
    ) async throws(TransferError) -> TransferRequest {
        var outgoing = request
        guard hasCredentials, let target, uri?.hasSameOrigin(as: target) == true else {
            outgoing.fields.remove("Host")
            outgoing.fields = outgoing.fields.withoutSecrets
            return outgoing
        }
        if let credentials = target.basicCredentials, !outgoing.fields.contains("Authorization") {
            outgoing.fields.append("Authorization", credentials)
        }
        guard let authorize = configuration.authorize else { return outgoing }
        let result = await control.result(within: limit) { [outgoing] in
            var authorized = outgoing
            try await authorize(&authorized)
            return authorized
        }
        switch result {
        case .success(var authorized):
            restore(&authorized)
            return authorized
        case .failure(let failure):
            throw TransferError(
                .authorizationFailed, "The request could not be authorized.", underlying: failure)
        }
    }
}

extension TransferClient {
    /// The transfers that have started and not ended, in the order in which they were started. Those with
    /// ``TransferProgress/isWaiting`` wait for their turn or for their next attempt.
    public var transfers: [any Transfer] { registered }

    /// A new stream of the events of all transfers of this client. It ends when the client is shut down.
    ///
    /// The stream begins with the next event. This function starts no transfer.
    ///
    /// At most 1024 events wait for the reader. A `progress`, `received` or `checkpoint` event replaces the previous
    /// one of the same transfer if that one still waits. If 1024 events wait, the next event replaces the oldest event
    /// that is not the last one of its transfer; if there is none, it replaces the oldest event.
    public func events() -> AsyncStream<(transfer: any Transfer, event: TransferEvent)> { clientEvents.stream() }
}

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
