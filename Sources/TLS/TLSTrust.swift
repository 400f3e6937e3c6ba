/// Whom a client believes.
public enum TLSTrust: Sendable, Hashable {
    /// The authorities of the system.
    case system
    /// Those in a file of PEM certificates, and no others.
    case authorities(path: String)
    /// Everybody: for tests of a server that shows no certificate which anybody has signed.
    case anybody
}
