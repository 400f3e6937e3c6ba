/// The certificates that a client trusts.
public enum TLSTrust: Sendable, Hashable {
    /// Those of the authorities of the system.
    case system
    /// Those of the authorities in a file of PEM certificates, and no others.
    case authorities(path: String)
    /// Any certificate, without verification: for a server on this machine that gets no secrets, and for tests of a
    /// server with a self-signed certificate.
    case anyCertificate
}
