import SystemCalls
import TLS

/// The certificate that a server uses for new connections.
final class CurrentCredentials: Sendable {
    private let current: Monitor<ServerCredentials>

    init(_ credentials: ServerCredentials) { current = Monitor(credentials) }

    var value: ServerCredentials { current.withLock { $0 } }

    func replace(with credentials: ServerCredentials) { current.withLock { $0 = credentials } }
}
