import HTTPSemantics
import TransferServer

/// Authorizes requests below open routes without credentials of this server, and all others with another authorizer.
public struct GatewayAuthorizer: Authorizer {
    private let open: [[String]]
    private let base: any Authorizer

    /// - Parameters:
    ///   - routes: the routes; those that are not open are left to `base`.
    ///   - base: the authorizer of everything else.
    public init(routes: [Route], base: any Authorizer) {
        open = routes.filter { $0.access == .open }.map { $0.path.split(separator: "/").map(String.init) }
        self.base = base
    }

    /// Returns the identity that `base` finds, or the anonymous one for an open route.
    ///
    /// Uploads of open routes belong to the anonymous principal, so their requests need no credentials either. An
    /// `Authorization` that `base` does not know is meant for the application.
    public func identify(_ head: RequestHead, target: RequestTarget) throws(AuthorizationRefusal) -> Identity {
        do throws(AuthorizationRefusal) {
            return try base.identify(head, target: target)
        } catch {
            guard let path = try? PathSegments(decoding: target.path).segments,
                isOpen(path) || path.first == "uploads" && !open.isEmpty
            else { throw error }
            return .anonymous
        }
    }

    /// Allows everything below open routes; other paths are left to `base`.
    public func refusal(
        of identity: Identity, _ operation: AccessOperation, at path: PathSegments?
    ) -> AuthorizationRefusal? {
        if path.map({ isOpen($0.segments) }) ?? (identity == .anonymous && !open.isEmpty) { return nil }
        return base.refusal(of: identity, operation, at: path)
    }

    private func isOpen(_ path: [String]) -> Bool { open.contains { path.starts(with: $0) } }
}

/// The authorizer of everything but routes on a server without tokens.
package struct RoutesOnlyAuthorizer: Authorizer {
    private let allowsAnonymous: Bool

    /// - Parameter allowsAnonymous: whether all clients may do everything.
    package init(allowsAnonymous: Bool) { self.allowsAnonymous = allowsAnonymous }

    package func identify(_ head: RequestHead, target: RequestTarget) throws(AuthorizationRefusal) -> Identity {
        guard allowsAnonymous else { throw Self.refusal }
        return .anonymous
    }

    package func refusal(
        of identity: Identity, _ operation: AccessOperation, at path: PathSegments?
    ) -> AuthorizationRefusal? { allowsAnonymous ? nil : Self.refusal }

    private static let refusal = AuthorizationRefusal.forbidden(
        code: "routes-only",
        detail: "This server serves only its routes. Start it with --token-file to use its files and metrics.")
}
