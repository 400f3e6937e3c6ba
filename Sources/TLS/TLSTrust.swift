/// Whom a client believes.
public enum TLSTrust: Sendable, Hashable {
    /// The authorities of the system.
    case system
    /// Those in a file of PEM certificates, and no others.
    case authorities(path: String)
    /// Everybody: for a server of this machine to which no secret is told, and for tests of one that shows a certificate
    /// which nobody has signed.
    case anyCertificate
}
