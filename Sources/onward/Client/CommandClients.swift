import ResumableTransfer
import SystemCalls

/// The clients of one command: one for all its transfers with the same options, so that they share connections and what
/// was learned of servers.
final class CommandClients: Sendable {
    private let clients = Monitor<[SavedTransfer.Options: TransferClient]>([:])

    func client(for settings: ClientSettings, _ report: TransferReport) throws(CommandFailure) -> TransferClient {
        // All other settings are those of the command line.
        let key = settings.saved
        if let client = clients.withLock({ $0[key] }) { return client }
        let client = try settings.client(for: report)
        clients.withLock { $0[key] = client }
        return client
    }

    func shutDown() async {
        let ended = clients.withLock { clients in
            defer { clients = [:] }
            return Array(clients.values)
        }
        for client in ended { await client.shutDown() }
    }
}
