import CGnuTLS

/// A key from which GnuTLS derives the keys that encrypt session tickets (RFC 5077; RFC 8446 section 4.6.1). It is only
/// in memory.
final class TicketKey: Sendable {
    // Written only by `init` and `deinit`.
    private nonisolated(unsafe) var key = gnutls_datum_t()

    /// - Throws: `TLSError` if random bytes or memory are not available.
    init() throws(TLSError) {
        let status = gnutls_session_ticket_key_generate(&key)
        if status < 0 { throw TLSError(status) }
    }

    deinit {
        gnutls_memset(key.data, 0, Int(key.size))
        onward_gnutls_free(key.data)
    }

    /// Enables tickets for a session whose handshake has not begun.
    func use(for session: OpaquePointer) throws(TLSError) {
        let status = withUnsafePointer(to: key) { gnutls_session_ticket_enable_server(session, $0) }
        if status < 0 { throw TLSError(status) }
    }
}
