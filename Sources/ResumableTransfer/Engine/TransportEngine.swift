import SystemCalls

/// Performs the exchanges of a client.
protocol Transport: Sendable {
    /// Starts a request. No part of it is kept after the exchange has ended.
    func start(_ request: TransportRequest) -> TransportExchange

    /// Ends all running exchanges as canceled. Exchanges that are started later immediately end in the same way.
    func shutDown()
}

/// Sends requests with libcurl, all of them on one thread.
final class TransportEngine: Transport {
    private let commands: EngineCommands
    private let thread: WorkerThread?

    init() {
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

    func start(_ request: TransportRequest) -> TransportExchange {
        let exchange = TransportExchange(commands)
        commands.post(.start(request, exchange))
        return exchange
    }

    /// Ends all running exchanges as canceled, closes all connections, and waits until the thread has ended.
    func shutDown() {
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
        /// The multi handle to wake; nil after the engine's thread has stopped accepting commands.
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
            // Called under the lock, because the handle may be released when it is no longer stored here.
            multi.wake()
            return true
        }
        if !isAccepted, case .start(_, let exchange) = command { exchange.end(.cancelled) }
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
