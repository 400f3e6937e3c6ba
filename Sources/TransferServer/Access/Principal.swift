/// The names of those who may use a server.
enum Principal {
    /// Everybody who showed nothing.
    static let anonymous = "anonymous"
}
