import TLS

/// The settings of a run of the server mode.
package struct ServerSettings: Sendable {
    /// The URL of the target to which representations are uploaded. `{name}` is replaced by a new name for each creation,
    /// `{port}` by the port if there is a ``startCommand``.
    package var url: String
    /// The method of the requests that create an upload, such as POST or PUT.
    package var method = "POST"
    /// The fields of every request, for example credentials.
    package var fields: [(String, String)] = []
    /// The fields with the credentials of a second principal, which replace ``fields``; empty if there is only one principal.
    package var otherFields: [(String, String)] = []
    /// The certificates to trust if the URL is `https`.
    package var trust: TLSTrust = .system
    /// The profiles to test; empty for those that the subject supports.
    package var profiles: [Profile] = []
    /// Shell patterns of the IDs of the cases to run; empty for all cases.
    package var only: [String] = []
    /// The maximum time to wait for a message or a connection.
    package var timeout: Duration = .seconds(5)
    /// A command with `{port}` and `{root}` that starts the server.
    package var startCommand: String?
    /// The size in bytes of a separate file system for `{root}`; `nil` for none. It requires a ``startCommand``.
    package var diskSize: Int64?

    package init(url: String) { self.url = url }
}
