/// The sender of a request.
public struct Identity: Sendable, Hashable {
    /// The principal: the name that owns uploads and files, for which quotas are counted, and which is logged.
    public let principal: String
    /// The credential that the client sent, as an identifier of the authorizer; never the credential itself.
    public let credential: String

    /// Creates an identity.
    public init(principal: String, credential: String = "") {
        self.principal = principal
        self.credential = credential
    }

    /// The identity of all clients without credentials.
    public static let anonymous = Identity(principal: "anonymous")
}
