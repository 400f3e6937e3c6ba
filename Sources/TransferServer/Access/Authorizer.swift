import HTTPSemantics

/// Decides who may do what on a server.
///
/// It is asked before anything is told about a resource, before any content is read, and once more when an upload is
/// complete (draft section 13). Calls come on the connections' threads, at the same time, and may block.
public protocol Authorizer: Sendable {
    /// Who sends a request, by what its head says.
    ///
    /// - Parameter target: the request's target; its authority and the `Host` field are not checked against each other.
    /// - Throws: `AuthorizationRefusal` where the request is not to be served at all.
    func identify(_ head: RequestHead, target: RequestTarget) throws(AuthorizationRefusal) -> Identity

    /// Why this identity may not do something, by the rules of this moment; `nil`: it may.
    ///
    /// - Parameter path: of the target resource. For an upload resource it is the path of the target that it was created
    ///   for; `nil` stands for the server as a whole.
    func refusal(of identity: Identity, _ operation: Operation, at path: PathSegments?) -> AuthorizationRefusal?
}
