import TLS

/// What the person who runs the server mode asks for.
package struct ServerSettings: Sendable {
    /// Where representations are uploaded to; `{name}` stands for a new name each time, `{port}` for the port with
    /// ``startCommand``.
    package var url: String
    /// The method of creations: POST, PUT or another.
    package var method = "POST"
    /// Fields of every request, credentials for example.
    package var fields: [(String, String)] = []
    /// Fields in place of ``fields`` that make a request another principal's; none where there is only one.
    package var otherFields: [(String, String)] = []
    /// Which certificates to trust if the URL is `https`.
    package var trust: TLSTrust = .system
    /// The profiles to verify by; empty means those that the subject speaks.
    package var profiles: [Profile] = []
    /// Patterns of case IDs, `*` and `?` as in a shell; none is all.
    package var only: [String] = []
    /// How long to wait for anything.
    package var timeout: Duration = .seconds(5)
    /// A command with `{port}` and `{root}` that starts the server.
    package var startCommand: String?
    /// With ``startCommand``: `{root}` is a file system of its own that holds so many bytes.
    package var diskSize: Int64?

    package init(url: String) { self.url = url }
}
