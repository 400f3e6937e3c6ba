import HTTPSemantics

/// Decides which identity may perform which operation.
///
/// The server calls the authorizer before it sends anything about a resource, before it reads content, and again when
/// an upload is complete (draft section 13). The threads of connections call it concurrently, and the calls may block.
public protocol Authorizer: Sendable {
    /// Returns the identity that sends a request.
    ///
    /// - Parameters:
    ///   - head: the request line and the fields.
    ///   - target: the target of the request; its authority can differ from the `Host` field.
    /// - Throws: `AuthorizationRefusal` if the request must not be served.
    func identify(_ head: RequestHead, target: RequestTarget) throws(AuthorizationRefusal) -> Identity

    /// Returns why this identity may not perform the operation now; `nil` if it may.
    ///
    /// - Parameters:
    ///   - identity: the identity that ``identify(_:target:)`` returned.
    ///   - operation: the operation of the request.
    ///   - path: the path of the target resource. For an upload resource it is the path of the target of the
    ///     upload; `nil` means the server itself.
    func refusal(of identity: Identity, _ operation: AccessOperation, at path: PathSegments?) -> AuthorizationRefusal?
}

/// The operation of a request on a target resource.
#if hasAttribute(nonexhaustive)
    @nonexhaustive
#endif
public enum AccessOperation: Sendable, Hashable, CaseIterable {
    /// Read the methods and limits (`OPTIONS`).
    case discover
    /// Read a resource of a handler (`GET`, `HEAD`).
    case read
    /// Read the server's metrics.
    case readMetrics
    /// Create a file with a new name, or append to, retrieve or cancel an upload.
    case create
    /// Replace or delete an existing file.
    case write

    /// The operation of a request without content.
    init(_ method: Method) {
        self = method == .options ? .discover : method.isSafe ? .read : .write
    }
}

/// The sender of a request.
public struct Identity: Sendable, Hashable {
    /// The principal: the name that owns uploads and files, for which quotas are counted, and which is logged.
    public let principal: String
    /// The identifier by which the authorizer recognizes the credential of the client; never the credential itself.
    public let credential: String

    /// Creates an identity.
    public init(principal: String, credential: String = "") {
        self.principal = principal
        self.credential = credential
    }

    /// The identity of all clients without credentials.
    public static let anonymous = Identity(principal: "anonymous")
}
