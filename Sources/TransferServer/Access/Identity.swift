/// Who sent a request.
public struct Identity: Sendable, Hashable {
    /// The name to which uploads belong and quotas apply, and which is logged.
    public let principal: String
    /// Which of the principal's credentials was shown, in words of the authorizer; never the credential itself.
    public let credential: String

    public init(principal: String, credential: String = "") {
        self.principal = principal
        self.credential = credential
    }

    /// Everybody who showed nothing.
    public static let anonymous = Identity(principal: "anonymous")
}
