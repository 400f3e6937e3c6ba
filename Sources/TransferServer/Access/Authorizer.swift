import HTTPSemantics

/// Decides which identity may perform which operation.
///
/// The server calls it before it sends anything about a resource, before it reads content, and again when an upload is
/// complete (draft section 13). The threads of connections call it concurrently, and the calls may block.
public protocol Authorizer: Sendable {
    /// Returns the identity that sends a request.
    ///
    /// - Parameter target: the target of the request; its authority can differ from the `Host` field.
    /// - Throws: `AuthorizationRefusal` if the request must not be served.
    func identify(_ head: RequestHead, target: RequestTarget) throws(AuthorizationRefusal) -> Identity

    /// Returns why this identity may not perform the operation now; `nil` if it may.
    ///
    /// - Parameter path: the path of the target resource. For an upload resource it is the path of the target of the
    ///   upload; `nil` means the server itself.
    func refusal(of identity: Identity, _ operation: Operation, at path: PathSegments?) -> AuthorizationRefusal?
}
