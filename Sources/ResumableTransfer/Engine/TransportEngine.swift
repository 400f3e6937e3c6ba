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
