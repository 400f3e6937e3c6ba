import CGnuTLS
import SystemCalls

/// A certificate chain and its private key, with which a server authenticates itself.
///
/// After `init` GnuTLS only reads the credentials, so any number of sessions can use them on any threads. The
/// credentials must outlive these sessions.
public final class ServerCredentials: Sendable {
    /// The certificate chain in PEM, beginning with the server's certificate.
    public let certificate: [UInt8]
    /// The private key in PEM, unencrypted.
    public let key: [UInt8]
    /// The expiry of the server's certificate, in seconds since 1970.
    public let expiresAt: Int64
    /// The keys for tickets. Each certificate has its own keys, so that a ticket cannot resume a session of another
    /// certificate.
    private let ticketKeys: TicketKeys
    // Written only by `init`.
    private nonisolated(unsafe) let handle: gnutls_certificate_credentials_t

    /// - Throws: `TLSError` if the PEM cannot be read, or the key does not belong to the certificate.
    public init(certificate: [UInt8], key: [UInt8]) throws(TLSError) {
        self.certificate = certificate
        self.key = key
        expiresAt = try Self.expiry(of: certificate)
        ticketKeys = try TicketKeys(at: SystemClock.monotonicNanoseconds())
        var made: gnutls_certificate_credentials_t?
        try Self.check(gnutls_certificate_allocate_credentials(&made))
        guard let made else { throw TLSError(GNUTLS_E_MEMORY_ERROR) }
        handle = made
        let status = Self.withDatum(certificate) { certificate in
            Self.withDatum(key) { key in
                gnutls_certificate_set_x509_key_mem2(made, &certificate, &key, GNUTLS_X509_FMT_PEM, nil, 0)
            }
        }
        try Self.check(status)
    }

    deinit { gnutls_certificate_free_credentials(handle) }

    /// Sets the certificate, the key for tickets and the ALPN protocols of a session (`gnutls_session_t`) before its
    /// handshake.
    package func use(for session: UnsafeMutableRawPointer) throws(TLSError) {
        let session = OpaquePointer(session)
        try Self.check(gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, UnsafeMutableRawPointer(handle)))
        try ticketKeys.key(at: SystemClock.monotonicNanoseconds()).use(for: session)
        // A client that offers only other protocols is rejected (RFC 7301 section 3.2).
        var protocols = Self.protocols.map {
            gnutls_datum_t(data: UnsafeMutablePointer(mutating: $0.utf8Start), size: UInt32($0.utf8CodeUnitCount))
        }
        let flags = GNUTLS_ALPN_MANDATORY.rawValue | GNUTLS_ALPN_SERVER_PRECEDENCE.rawValue
        try Self.check(gnutls_alpn_set_protocols(session, &protocols, UInt32(protocols.count), flags))
    }

    /// The ALPN names of the HTTP versions.
    private static let protocols: [StaticString] = ["http/1.1", "http/1.0"]

    /// The GnuTLS priority string of the server: only TLS 1.3 and 1.2 (RFC 8996), with forward secrecy, authenticated
    /// encryption and elliptic curves, without SHA-1, in the order of the server. Finite field groups are excluded
    /// because they cost a server much more time than an attacking client. AES-128-GCM is the first cipher because it
    /// takes the least time of both sides, and no attack on it is practical.
    public static let priorities = [
        "NORMAL", "%SERVER_PRECEDENCE", "-VERS-ALL", "+VERS-TLS1.3", "+VERS-TLS1.2", "-KX-ALL", "+ECDHE-ECDSA",
        "+ECDHE-RSA", "-CIPHER-ALL", "+AES-128-GCM", "+AES-256-GCM", "+CHACHA20-POLY1305", "-MAC-ALL", "+AEAD",
        "-GROUP-ALL", "+GROUP-X25519", "+GROUP-SECP256R1", "+GROUP-SECP384R1", "+GROUP-SECP521R1",
        "-SIGN-RSA-SHA1", "-SIGN-ECDSA-SHA1",
    ].joined(separator: ":")

    private static func expiry(of certificate: [UInt8]) throws(TLSError) -> Int64 {
        var made: gnutls_x509_crt_t?
        try check(gnutls_x509_crt_init(&made))
        defer { gnutls_x509_crt_deinit(made) }
        try check(withDatum(certificate) { gnutls_x509_crt_import(made, &$0, GNUTLS_X509_FMT_PEM) })
        return Int64(gnutls_x509_crt_get_expiration_time(made))
    }

    private static func withDatum<Result>(_ bytes: [UInt8], _ body: (inout gnutls_datum_t) -> Result) -> Result {
        bytes.withUnsafeBufferPointer { buffer in
            var datum = gnutls_datum_t(
                data: UnsafeMutablePointer(mutating: buffer.baseAddress), size: UInt32(buffer.count))
            return body(&datum)
        }
    }

    private static func check(_ status: Int32) throws(TLSError) {
        if status < 0 { throw TLSError(status) }
    }
}

/// The current ticket key, which is replaced when it is too old.
///
/// GnuTLS derives another key from the same ticket key every 18 hours. That is not enough: an attacker who reads the
/// ticket key from memory could derive the keys of all tickets, and decrypt recorded sessions of TLS 1.2. So the ticket
/// key itself is replaced, and the old key is overwritten; GnuTLS keeps a copy in each session that is open. A client
/// with a ticket of the old key makes a full handshake.
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

/// A key from which GnuTLS derives the keys that encrypt session tickets (RFC 5077; RFC 8446 section 4.6.1). It is
/// never written to a file.
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
