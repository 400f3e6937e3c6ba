import SystemCalls

/// Carries out requests with libcurl, all of them on one thread of its own.
final class TransportEngine: Sendable {
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
            // Without a thread every exchange ends as canceled at once.
            thread = nil
            _ = commands.close()
        }
    }

    deinit { commands.post(.stop) }

    /// Begins a request. Nothing of it is kept once the exchange has ended.
    func start(_ request: TransportRequest) -> TransportExchange {
        let exchange = TransportExchange(commands)
        commands.post(.start(request, exchange))
        return exchange
    }

    /// Ends what is under way as canceled, closes all connections, and waits until the thread has ended.
    func shutDown() {
        commands.post(.stop)
        thread?.join()
    }
}

/// What other threads want of the engine's thread, in order.
final class EngineCommands: Sendable {
    enum Command: Sendable {
        case start(TransportRequest, TransportExchange)
        case openGate(TransportExchange)
        case noteProgress(TransportExchange)
        case cancel(TransportExchange)
        case stop
    }

    private struct State: Sendable {
        var waiting: [Command] = []
        /// The multi handle to wake; nil once the engine's thread takes no command any more.
        var multi: MultiHandle?
    }

    private let state: Monitor<State>

    init(_ multi: MultiHandle) {
        state = Monitor(State(multi: multi))
    }

    /// Posts a command. After the engine has stopped, an exchange that should start ends as canceled.
    func post(_ command: Command) {
        let isTaken = state.withLock { state in
            guard let multi = state.multi else { return false }
            state.waiting.append(command)
            // Under the lock, for the handle lives as long as it is kept here.
            multi.wake()
            return true
        }
        if !isTaken, case .start(_, let exchange) = command { exchange.end(.cancelled) }
    }

    /// Takes what has come, on the engine's thread.
    func removeAll() -> [Command] {
        state.withLock { state in
            if state.waiting.isEmpty { return [] }
            defer { state.waiting = [] }
            return state.waiting
        }
    }

    /// Takes what is left; nothing is accepted afterwards.
    func close() -> [Command] {
        state.withLock { state in
            defer { state = State() }
            return state.waiting
        }
    }
}
