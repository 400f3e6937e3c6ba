import SystemCalls

/// The current ticket key, which is replaced when it is too old.
///
/// GnuTLS derives another key from the same ticket key every 18 hours. That is not enough: an attacker who reads the
/// ticket key from memory could derive the keys of all tickets, and decrypt recorded sessions of TLS 1.2. So the ticket
/// key itself is replaced, and the old one is overwritten; GnuTLS keeps a copy in each session that is open. A client
/// whose ticket is older makes a full handshake.
final class TicketKeys: Sendable {
    /// The time in nanoseconds for which a key is used for new connections.
    static let lifetime: Int64 = 12 * 3600 * 1_000_000_000

    private let current: Monitor<(key: TicketKey, end: Int64)>

    init(at now: Int64) throws(TLSError) { current = Monitor((try TicketKey(), now + Self.lifetime)) }

    /// The key for a new connection.
    /// - Parameter now: monotonic nanoseconds.
    func key(at now: Int64) throws(TLSError) -> TicketKey {
        try current.withLock { current throws(TLSError) in
            if now >= current.end { current = (try TicketKey(), now + Self.lifetime) }
            return current.key
        }
    }
}
