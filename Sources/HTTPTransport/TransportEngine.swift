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
        let multi = MultiHandle()
        let commands = EngineCommands(multi)
        self.commands = commands
        do {
            thread = try WorkerThread(name: "transfer-engine") {
                var loop = TransportLoop(multi, commands)
                loop.run()
            }
        } catch {
            // Without a thread every exchange immediately ends as canceled.
            thread = nil
            _ = commands.close()
        }
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
        /// The multi handle to wake; `nil` after the engine's thread has stopped accepting commands.
        var multi: MultiHandle?
    }

    private let state: Monitor<State>

    init(_ multi: MultiHandle) {
        state = Monitor(State(multi: multi))
    }

    /// Posts a command. After the engine has stopped, an exchange that should start ends as canceled.
    func post(_ command: Command) {
        let isAccepted = state.withLock { state in
            guard let multi = state.multi else { return false }
            state.waiting.append(command)
            // The first of the waiting commands has woken the thread. This is called under the lock, because the handle may
            // be released when it is no longer stored here.
            if state.waiting.count == 1 { multi.wake() }
            return true
        }
        if !isAccepted, case .start(_, let exchange) = command { exchange.end(.canceled) }
    }

    func post(_ command: ExchangeCommand, to exchange: TransportExchange) { post(.forExchange(command, exchange)) }

    /// Removes and returns the waiting commands. Called on the engine's thread.
    func removeAll() -> [Command] {
        state.withLock { state in
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
            multi.wait(keepTime())
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
            report: { event in
                guard request.isMeasured || request.gate != nil else { return }
                if case .head = event, !request.isMeasured { return }
                exchange.report(event)
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
            switch transfer.keepTime(now) {
            case .proceed(let until): next = min(next, until ?? .max)
            case let step: follow(step, of: easy)
            }
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
        // After this no command wakes the thread, and the connections are closed before it ends.
        multi.close()
    }
}
