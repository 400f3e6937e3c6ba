import ResumableTransfer
import SystemCalls

/// The clients of one command: one for all its transfers with the same options, so that they share connections and what
/// was learned of servers. The transfers run one after the other.
final class CommandClients: Sendable {
    private struct State {
        var clients: [SavedTransfer.Options: TransferClient] = [:]
        /// What keeps the state of the transfer that is running.
        var run: TransferRun?
    }

    private let state = Monitor(State())

    /// The client for a transfer that begins; ``release()`` follows at its end.
    func client(
        for settings: ClientSettings, _ run: TransferRun
    ) throws(CommandFailure) -> TransferClient {
        state.withLock { $0.run = run }
        // All other settings are those of the command line.
        let key = settings.saved
        if let client = state.withLock({ $0.clients[key] }) { return client }
        let state = state
        let client = try settings.client(for: run.report) { data in state.withLock { $0.run }?.save(data) }
        state.withLock { $0.clients[key] = client }
        return client
    }

    /// The transfer has ended: its state belongs to other processes again.
    func release() { state.withLock { $0.run = nil } }

    func shutDown() async {
        let clients = state.withLock { state in
            defer { state = State() }
            return Array(state.clients.values)
        }
        for client in clients { await client.shutDown() }
    }
}
