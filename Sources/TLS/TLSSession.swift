import CGnuTLS
import SystemCalls

/// A TLS session that somebody else owns, for writing between his own writes.
///
/// To be used on the thread alone on which its owner uses it, while it is open.
package struct TLSSession: @unchecked Sendable {
    // The owner's; used on one thread, see above.
    private let handle: OpaquePointer

    /// - Parameter session: a `gnutls_session_t` whose handshake is done.
    package init(_ session: UnsafeMutableRawPointer) { handle = OpaquePointer(session) }

    /// Sends all of `bytes`, waiting at most `timeout` milliseconds for the first byte to fit and as long again for the
    /// rest.
    ///
    /// - Parameter socket: the session's, to wait on.
    package func send(_ bytes: [UInt8], on socket: SocketOutput, timeout: Int32) -> SocketOutput.Outcome {
        guard socket.isWritable(within: timeout) else { return .notWritable }
        var sent = 0
        while sent < bytes.count {
            guard let count = sendRecord(bytes[sent...], on: socket, timeout: timeout) else { return .broken }
            sent += count
        }
        return .sent
    }

    /// Tells the peer that nothing more will come (RFC 8446 section 6.1).
    package func endOutput() { gnutls_bye(handle, GNUTLS_SHUT_WR) }

    /// Tells the peer that there is no second handshake on this connection (RFC 5246 section 7.2.2).
    package func refuseRenegotiation() { gnutls_alert_send(handle, GNUTLS_AL_WARNING, GNUTLS_A_NO_RENEGOTIATION) }

    private func sendRecord(_ bytes: ArraySlice<UInt8>, on socket: SocketOutput, timeout: Int32) -> Int? {
        var count = bytes.withUnsafeBytes { gnutls_record_send(handle, $0.baseAddress, $0.count) }
        // An encrypted record that did not fit whole is kept by GnuTLS, and has to go out before anything else.
        while count == Int(GNUTLS_E_AGAIN) || count == Int(GNUTLS_E_INTERRUPTED) {
            guard socket.isWritable(within: max(timeout, 1000)) else { return nil }
            count = gnutls_record_send(handle, nil, 0)
        }
        return count > 0 ? count : nil
    }
}
