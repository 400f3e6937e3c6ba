import CGnuTLS
import SystemCalls

/// The client's end of a TLS connection over a stream socket, in non-blocking mode. Every operation has a deadline in
/// nanoseconds of the monotonic clock, and throws `ETIMEDOUT` after it. Use it from one thread.
package final class TLSClientConnection {
    private let socket: ConnectedSocket
    private let session: gnutls_session_t
    private let credentials: gnutls_certificate_credentials_t
    /// Whether GnuTLS has an encrypted record that the socket did not accept yet.
    private var hasPendingRecord = false

    /// The reason why a connection could not be established.
    package enum Failure: Error, Sendable, Hashable, CustomStringConvertible {
        case socket(Errno)
        case session(TLSError)
        /// The certificate is not trusted; the text explains why.
        case untrusted(String)

        package var description: String {
            switch self {
            case .socket(let error): "\(error)"
            case .session(let error): "\(error)"
            case .untrusted(let reason): reason
            }
        }
    }

    /// Performs the handshake and verifies the certificate of the peer.
    ///
    /// - Parameter host: a DNS name, or an IP address without brackets.
    package init(
        over socket: ConnectedSocket, to host: String, trusting trust: TLSTrust, until deadline: Int64
    ) throws(Failure) {
        self.socket = socket
        var made: gnutls_certificate_credentials_t?
        var session: gnutls_session_t?
        guard gnutls_certificate_allocate_credentials(&made) >= 0, let credentials = made else {
            throw .session(TLSError(GNUTLS_E_MEMORY_ERROR))
        }
        let flags = UInt32(GNUTLS_CLIENT) | UInt32(GNUTLS_NONBLOCK) | UInt32(GNUTLS_NO_SIGNAL)
        guard gnutls_init(&session, flags) >= 0, let session else {
            gnutls_certificate_free_credentials(credentials)
            throw .session(TLSError(GNUTLS_E_MEMORY_ERROR))
        }
        self.credentials = credentials
        self.session = session
        try Self.load(trust, into: credentials)
        try Self.check(gnutls_set_default_priority(session))
        try Self.check(gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, UnsafeMutableRawPointer(credentials)))
        // Server Name Indication must not contain an address (RFC 6066 section 3).
        if !host.contains(":"), host.contains(where: { $0.isLetter }) {
            try Self.check(gnutls_server_name_set(session, GNUTLS_NAME_DNS, host, host.utf8.count))
        }
        gnutls_transport_set_int2(session, socket.rawValue, socket.rawValue)
        try performHandshake(until: deadline)
        if trust != .anyCertificate { try verify(host) }
    }

    deinit {
        gnutls_deinit(session)
        gnutls_certificate_free_credentials(credentials)
    }

    // MARK: - Handshake

    /// Verifies that the certificates can be loaded.
    package static func checkCertificates(of trust: TLSTrust) throws(Failure) {
        var made: gnutls_certificate_credentials_t?
        guard gnutls_certificate_allocate_credentials(&made) >= 0, let credentials = made else {
            throw .session(TLSError(GNUTLS_E_MEMORY_ERROR))
        }
        defer { gnutls_certificate_free_credentials(credentials) }
        try load(trust, into: credentials)
    }

    private static func load(
        _ trust: TLSTrust, into credentials: gnutls_certificate_credentials_t
    ) throws(Failure) {
        switch trust {
        case .system: try check(gnutls_certificate_set_x509_system_trust(credentials))
        case .authorities(let path):
            let count = gnutls_certificate_set_x509_trust_file(credentials, path, GNUTLS_X509_FMT_PEM)
            try check(count)
            if count == 0 { throw .untrusted("there is no certificate in \(path)") }
        case .anyCertificate: break
        }
    }

    private func performHandshake(until deadline: Int64) throws(Failure) {
        while true {
            let status = gnutls_handshake(session)
            if status == GNUTLS_E_SUCCESS { return }
            guard gnutls_error_is_fatal(status) == 0 else { throw .session(TLSError(status)) }
            if status == GNUTLS_E_AGAIN {
                do throws(Errno) { try awaitSocket(until: deadline) } catch { throw .socket(error) }
            }
        }
    }

    private func verify(_ host: String) throws(Failure) {
        var status: UInt32 = 0
        try Self.check(gnutls_certificate_verify_peers3(session, host, &status))
        guard status != 0 else { return }
        var text = gnutls_datum_t()
        gnutls_certificate_verification_status_print(status, GNUTLS_CRT_X509, &text, 0)
        defer { onward_gnutls_free(text.data) }
        throw .untrusted(text.data.map { String(cString: $0) } ?? "the certificate is not trusted")
    }

    // MARK: - Content

    /// Sends bytes and returns how many were accepted, at least one.
    /// - Parameter bytes: not empty.
    /// - Throws: `EPIPE` if the connection cannot be used any more; `ETIMEDOUT`.
    package func send(_ bytes: ArraySlice<UInt8>, until deadline: Int64) throws(Errno) -> Int {
        while true {
            // GnuTLS keeps a record that the socket did not accept, and must send it before any other record.
            let count =
                hasPendingRecord
                ? gnutls_record_send(session, nil, 0)
                : bytes.withUnsafeBytes { gnutls_record_send(session, $0.baseAddress, min($0.count, 16 << 10)) }
            if count > 0 {
                hasPendingRecord = false
                return count
            }
            switch Int32(count) {
            case GNUTLS_E_INTERRUPTED: hasPendingRecord = true
            case GNUTLS_E_AGAIN:
                hasPendingRecord = true
                try awaitSocket(until: deadline)
            default: throw .brokenPipe
            }
        }
    }

    /// Waits for input, stores it in `buffer` and returns the number of bytes; 0 once the peer has ended its output.
    package func receive(into buffer: UnsafeMutableRawBufferPointer, until deadline: Int64) throws(Errno) -> Int {
        while true {
            let count = gnutls_record_recv(session, buffer.baseAddress, buffer.count)
            if count >= 0 { return count }
            switch Int32(count) {
            case GNUTLS_E_INTERRUPTED, GNUTLS_E_REHANDSHAKE: continue
            case GNUTLS_E_AGAIN: try awaitSocket(until: deadline)
            // The connection ended without a close_notify alert.
            case GNUTLS_E_PREMATURE_TERMINATION: return 0
            default: throw .connectionReset
            }
        }
    }

    /// Waits until input has arrived or output can be sent.
    package func awaitReadiness(until deadline: Int64) throws(Errno) -> ConnectedSocket.Readiness {
        let ready = try socket.awaitReadiness(until: deadline)
        let hasInput = ready.hasInput || gnutls_record_check_pending(session) > 0
        return ConnectedSocket.Readiness(hasInput: hasInput, isWritable: ready.isWritable)
    }

    /// Ends the output with a close_notify alert (RFC 8446 section 6.1), and ends the output of the socket.
    package func endOutput() {
        gnutls_bye(session, GNUTLS_SHUT_WR)
        socket.endOutput()
    }

    /// See ``ConnectedSocket/resetOnClose()``.
    package func resetOnClose() { socket.resetOnClose() }

    // MARK: - Waiting

    /// Waits until the socket is ready for the operation that GnuTLS could not finish.
    private func awaitSocket(until deadline: Int64) throws(Errno) {
        if gnutls_record_get_direction(session) == 0 {
            try socket.awaitInput(until: deadline)
        } else {
            try socket.awaitOutput(until: deadline)
        }
    }

    private static func check(_ status: Int32) throws(Failure) {
        if status < 0 { throw .session(TLSError(status)) }
    }
}

/// The certificates that a client trusts.
public enum TLSTrust: Sendable, Hashable {
    /// The certificates of the authorities that the system trusts.
    case system
    /// The certificates of the authorities in a file of PEM certificates, and no others.
    case authorities(path: String)
    /// Any certificate, without verification: for a server on this machine that gets no secrets, and for tests of a
    /// server with a self-signed certificate.
    case anyCertificate
}
