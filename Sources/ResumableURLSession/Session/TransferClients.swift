import ResumableTransfer
import SystemCalls

/// The clients of a session, one for each set of what a client's transfers share and requests may choose.
final class TransferClients: Sendable {
    /// What differs from request to request.
    struct Choice: Sendable, Hashable {
        var stallTimeout: Duration?
        var proxy: String?
    }

    private let configuration: TransferClient.Configuration
    private let clients = Monitor<[Choice: TransferClient]>([:])

    init(_ configuration: TransferClient.Configuration) {
        self.configuration = configuration
    }

    func client(for choice: Choice) -> TransferClient {
        clients.withLock { clients in
            if let client = clients[choice] { return client }
            var configuration = configuration
            configuration.stallTimeout = choice.stallTimeout
            configuration.proxy = choice.proxy
            let client = TransferClient(configuration)
            clients[choice] = client
            return client
        }
    }

    func shutDown() async {
        let all = clients.withLock { clients in
            defer { clients = [:] }
            return Array(clients.values)
        }
        for client in all { await client.shutDown() }
    }
}
