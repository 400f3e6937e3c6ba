import CCurl
import HTTPSemantics
import SystemCalls

/// Performs the exchanges of a client.
package protocol Transport: Sendable {
    /// Starts a request. No part of it is kept after the exchange has ended.
    func start(_ request: TransportRequest) -> TransportExchange

    /// Ends all running exchanges as canceled. Exchanges that are started later immediately end in the same way.
    func shutDown()
}

/// Sends requests with libcurl, all of them on one thread.
package final class TransportEngine: Transport {
    private let commands: EngineCommands
    private let thread: WorkerThread?

    package init() {
        let queue = try? EventQueue()
        let commands = EngineCommands(queue)
        self.commands = commands
        // Without a thread every exchange immediately ends as canceled.
        thread = queue.flatMap { queue in
            try? WorkerThread(name: "transfer-engine") {
                var loop = TransportLoop(MultiHandle(queue), commands)
                loop.run()
            }
        }
        if thread == nil { _ = commands.close() }
    }

    deinit { commands.post(.stop) }

    package func start(_ request: TransportRequest) -> TransportExchange {
        let exchange = TransportExchange(commands)
        commands.post(.start(request, exchange))
        return exchange
    }

    /// Ends all running exchanges as canceled, closes all connections, and waits until the thread has ended.
    package func shutDown() {
        commands.post(.stop)
        thread?.join()
    }
}

/// The commands of other threads to the engine's thread, in order.
final class EngineCommands: ExchangeCommands {
    enum Command: Sendable {
        case start(TransportRequest, TransportExchange)
        case forExchange(ExchangeCommand, TransportExchange)
        case stop
    }

    private struct State: Sendable {
        var waiting: [Command] = []
        /// The queue that wakes the engine's thread; `nil` if the thread accepts no commands.
        var queue: EventQueue?
        /// Whether the engine's thread waits, or begins to wait. In both cases the next command has to wake it.
        var isThreadWaiting = false
    }

    private let state: Monitor<State>

    init(_ queue: EventQueue?) {
        state = Monitor(State(queue: queue))
    }

    /// Posts a command. After the engine has stopped, an exchange that should start ends as canceled.
    func post(_ command: Command) {
        let (isAccepted, sleeping) = state.withLock { state -> (Bool, EventQueue?) in
            guard let queue = state.queue else { return (false, nil) }
            state.waiting.append(command)
            defer { state.isThreadWaiting = false }
            return (true, state.isThreadWaiting ? queue : nil)
        }
        // The thread needs the lock as soon as it runs.
        sleeping?.wake()
        if !isAccepted, case .start(_, let exchange) = command { exchange.end(.canceled) }
    }

    func post(_ command: ExchangeCommand, to exchange: TransportExchange) { post(.forExchange(command, exchange)) }

    /// Whether no command waits, so that the engine's thread can wait. The next command then wakes it.
    func canWait() -> Bool {
        state.withLock { state in
            state.isThreadWaiting = state.waiting.isEmpty
            return state.isThreadWaiting
        }
    }

    /// Removes and returns the waiting commands. Called on the engine's thread.
    func removeAll() -> [Command] {
        state.withLock { state in
            state.isThreadWaiting = false
            if state.waiting.isEmpty { return [] }
            defer { state.waiting = [] }
            return state.waiting
        }
    }

    /// Removes and returns the remaining commands. No command is accepted afterwards.
    func close() -> [Command] {
        state.withLock { state in
            defer { state = State() }
            return state.waiting
        }
    }
}

/// The loop of the engine's thread: it executes commands, calls libcurl, and performs work that is due.
struct TransportLoop: ~Copyable {
    private let multi: MultiHandle
    private let commands: EngineCommands
    private var transfers: [EasyHandle.ID: (transfer: ActiveTransfer, exchange: TransportExchange)] = [:]
    private var handles: [ObjectIdentifier: EasyHandle.ID] = [:]
    private let reports = Reports()

    /// The exchanges with events that were not delivered. They are delivered before the thread waits.
    private final class Reports {
        private var exchanges: [TransportExchange] = []

        func add(_ event: TransportEvent, to exchange: TransportExchange) {
            if exchange.add(event) { exchanges.append(exchange) }
        }

        func deliver() {
            for exchange in exchanges { exchange.deliver() }
            exchanges.removeAll(keepingCapacity: true)
        }
    }

    init(_ multi: MultiHandle, _ commands: EngineCommands) {
        self.multi = multi
        self.commands = commands
    }

    /// Runs until the stop command.
    mutating func run() {
        while true {
            for command in commands.removeAll() where !execute(command) { return stop() }
            multi.perform()
            while let (easy, code) = multi.nextEnded() { end(easy) { $0.result(code) } }
            let limit = keepTime()
            reports.deliver()
            multi.wait(commands.canWait() ? limit : 0)
        }
    }

    /// - Returns: false if the loop has to stop.
    private mutating func execute(_ command: EngineCommands.Command) -> Bool {
        switch command {
        case .start(let request, let exchange): start(request, exchange)
        case .forExchange(let command, let exchange):
            if let transfer = transfer(of: exchange) { execute(command, of: transfer) }
        case .stop: return false
        }
        return true
    }

    private mutating func execute(_ command: ExchangeCommand, of transfer: ActiveTransfer) {
        switch command {
        case .openGate: follow(transfer.openGate(), of: transfer.easy.pointer)
        case .noteProgress: transfer.noteProgress()
        case .proceed: follow(transfer.proceed(), of: transfer.easy.pointer)
        case .cancel: end(transfer.easy.pointer) { $0.result(.canceled) }
        }
    }

    private mutating func start(_ request: TransportRequest, _ exchange: TransportExchange) {
        guard Fields.isValidName(request.method.rawValue), request.fields.firstInvalid == nil else {
            return exchange.end(.invalidRequest)
        }
        guard let easy = EasyHandle() else { return exchange.end(.outOfMemory) }
        easy.setSockets(multi.sockets)
        easy.prepare(request)
        let transfer = ActiveTransfer(
            request, easy, multi.sockets, wake: { [weak exchange] in exchange?.proceed() },
            report: { [reports] event in
                if request.isMeasured { reports.add(event, to: exchange) }
            })
        guard multi.add(easy, delegate: transfer) else { return exchange.end(.outOfMemory) }
        transfers[easy.pointer] = (transfer, exchange)
        handles[ObjectIdentifier(exchange)] = easy.pointer
    }

    private func transfer(of exchange: TransportExchange) -> ActiveTransfer? {
        handles[ObjectIdentifier(exchange)].flatMap { transfers[$0]?.transfer }
    }

    /// Does everything that is due.
    /// - Returns: the milliseconds until something is due again.
    private mutating func keepTime() -> Int32 {
        let now = SystemClock.monotonicNanoseconds()
        var next = now + 60_000_000_000
        for (easy, (transfer, _)) in transfers {
            if transfer.isDue(now) { follow(transfer.keepTime(now), of: easy) }
            next = min(next, transfer.nextTime)
        }
        return Int32(clamping: (max(next - now, 0) + 999_999) / 1_000_000)
    }

    private mutating func follow(_ step: ActiveTransfer.Step, of easy: EasyHandle.ID) {
        switch step {
        case .proceed: break
        case .end(let failure): end(easy) { $0.result(failure) }
        case .endWithCode(let code): end(easy) { $0.result(code) }
        }
    }

    private mutating func end(_ easy: EasyHandle.ID, _ result: (ActiveTransfer) -> TransportResult) {
        guard let (transfer, exchange) = transfers.removeValue(forKey: easy) else { return }
        handles[ObjectIdentifier(exchange)] = nil
        let result = result(transfer)
        multi.remove(transfer.easy)
        exchange.end(result)
    }

    private mutating func stop() {
        for easy in Array(transfers.keys) { end(easy) { $0.result(.canceled) } }
        for case .start(_, let exchange) in commands.close() { exchange.end(.canceled) }
        // The connections are closed before the thread ends.
        multi.close()
    }
}
