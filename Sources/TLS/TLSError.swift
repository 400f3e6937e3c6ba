import CGnuTLS

/// An error of GnuTLS: its code and its text.
public struct TLSError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The error code of GnuTLS, which is negative.
    public let code: Int32

    init(_ code: Int32) { self.code = code }

    /// The message of GnuTLS, or a clearer one for frequent errors.
    public var description: String {
        switch code {
        case GNUTLS_E_CERTIFICATE_KEY_MISMATCH: "the key does not belong to the certificate"
        case GNUTLS_E_BASE64_DECODING_ERROR, GNUTLS_E_NO_CERTIFICATE_FOUND,
            GNUTLS_E_BASE64_UNEXPECTED_HEADER_ERROR:
            "it holds no PEM of a certificate or key"
        case GNUTLS_E_DECRYPTION_FAILED: "the key is encrypted; give one without a passphrase"
        default: String(cString: gnutls_strerror(code))
        }
    }
}
