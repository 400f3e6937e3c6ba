import CGnuTLS

/// A certificate chain and its private key, with which a server shows who it is.
///
/// GnuTLS only reads it once it is made, so any number of sessions may use it on any threads; it has to outlive them.
public final class ServerCredentials: Sendable {
    /// The chain in PEM, the server's own certificate first, and the key.
    public let certificate: [UInt8]
    public let key: [UInt8]
    /// When the server's own certificate expires, in seconds since 1970.
    public let expiresAt: Int64
    // Written by `init` alone.
    private nonisolated(unsafe) let handle: gnutls_certificate_credentials_t

    /// - Throws: `TLSError` where the PEM cannot be read, or the key is not the certificate's.
    public init(certificate: [UInt8], key: [UInt8]) throws(TLSError) {
        self.certificate = certificate
        self.key = key
        expiresAt = try Self.expiry(of: certificate)
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

    /// Gives them to a session (`gnutls_session_t`) whose handshake has not begun.
    public func use(for session: UnsafeMutableRawPointer) throws(TLSError) {
        try Self.check(
            gnutls_credentials_set(OpaquePointer(session), GNUTLS_CRD_CERTIFICATE, UnsafeMutableRawPointer(handle)))
    }

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
