import CGnuTLS
import SystemCalls

/// A TLS session that belongs to another object. This value writes between the writes of that object.
///
/// Use it only on the thread of that object, while the session is open.
package struct TLSSession: @unchecked Sendable {
    // The other object owns the handle. It is used on only one thread: see above.
    private let handle: OpaquePointer

    /// - Parameter session: a `gnutls_session_t` whose handshake is done.
    package init(_ session: UnsafeMutableRawPointer) { handle = OpaquePointer(session) }

    /// Sends all of `bytes`. Waits at most `timeout` milliseconds until the first byte can be sent. After the first
    /// byte, the limit of each wait is `timeout` or one second, whichever is longer.
    ///
    /// - Parameter socket: the socket of the session.
    package func send(_ bytes: [UInt8], on socket: SocketOutput, timeout: Int32) -> SocketOutput.Outcome {
        guard socket.isWritable(within: timeout) else { return .notWritable }
        var sent = 0
        while sent < bytes.count {
            guard let count = sendRecord(bytes[sent...], on: socket, timeout: timeout) else { return .broken }
            sent += count
        }
        return .sent
    }

    /// Ends the output with a close_notify alert (RFC 8446 section 6.1).
    package func endOutput() { gnutls_bye(handle, GNUTLS_SHUT_WR) }

    /// Rejects a second handshake with a no_renegotiation alert (RFC 5246 section 7.2.2).
    package func refuseRenegotiation() { gnutls_alert_send(handle, GNUTLS_AL_WARNING, GNUTLS_A_NO_RENEGOTIATION) }

    private func sendRecord(_ bytes: ArraySlice<UInt8>, on socket: SocketOutput, timeout: Int32) -> Int? {
        var count = bytes.withUnsafeBytes { gnutls_record_send(handle, $0.baseAddress, $0.count) }
        // GnuTLS keeps a record that the socket did not accept entirely, and must send it before any other record.
        while count == Int(GNUTLS_E_AGAIN) || count == Int(GNUTLS_E_INTERRUPTED) {
            guard socket.isWritable(within: max(timeout, 1000)) else { return nil }
            count = gnutls_record_send(handle, nil, 0)
        }
        return count > 0 ? count : nil
    }
}

/// An error of GnuTLS: its code and its text.
public struct TLSError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The error code of GnuTLS, which is negative.
    public let code: Int32

    init(_ code: Int32) { self.code = code }

    /// The message of GnuTLS, or a clearer message for frequent errors.
    public var description: String {
        switch code {
        case GNUTLS_E_CERTIFICATE_KEY_MISMATCH: "the key does not belong to the certificate"
        case GNUTLS_E_BASE64_DECODING_ERROR, GNUTLS_E_NO_CERTIFICATE_FOUND,
            GNUTLS_E_BASE64_UNEXPECTED_HEADER_ERROR, GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE:
            "the certificate or the key is missing or is not in PEM format"
        case GNUTLS_E_DECRYPTION_FAILED: "the key is encrypted; use a key without a passphrase"
        default: String(cString: gnutls_strerror(code))
        }
    }
}
