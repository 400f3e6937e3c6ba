import HTTPSemantics
import TransferServer

/// Authorizes requests below open routes without credentials of this server, and all others with another authorizer.
public struct GatewayAuthorizer: UploadAuthorizer {
    /// The routes with the longest paths come first.
    private let routes: [(path: [String], isOpen: Bool)]
    private let own: OwnPaths
    private let base: any Authorizer

    /// - Parameters:
    ///   - routes: the routes; those that are not open are left to `base`.
    ///   - ownPrefix: `ServerConfiguration.ownPrefix`.
    ///   - base: the authorizer of everything else; `nil`: nothing else is allowed.
    public init(routes: [Route], ownPrefix: String = "", base: (any Authorizer)? = nil) {
        self.routes = routes.map { ($0.segments, $0.access == .open) }.sorted { $0.0.count > $1.0.count }
        own = OwnPaths(ownPrefix)
        self.base = base ?? RoutesOnlyAuthorizer(isAnonymousAllowed: false)
    }

    /// Returns the identity that `base` finds, or the anonymous one for an open route.
    /// - Throws: the refusal of `base`.
    public func identify(_ head: RequestHead, target: RequestTarget) throws(AuthorizationRefusal) -> Identity {
        guard hasOpenRoutes, let path = Self.segments(target.path) else {
            return try base.identify(head, target: target)
        }
        if isOpen(path.segments), isOpen(path.normalized) { return openIdentity(head, target) }
        // On a server without tokens and `--auth-url` no client can have credentials, so a request for an upload that
        // does not exist gets 404 instead of 403.
        if base is RoutesOnlyAuthorizer, own.isUpload(path.segments) { return .anonymous }
        return try base.identify(head, target: target)
    }

    /// Returns the identity of a request for an upload to an open route, which needs no credentials either.
    package func identify(_ head: RequestHead, target: RequestTarget, uploadTo path: PathSegments) -> Identity? {
        isOpen(path.segments) ? openIdentity(head, target) : nil
    }

    /// The identity of a request that the application authorizes itself. An `Authorization` that is not a token of this
    /// server is meant for the application.
    private func openIdentity(_ head: RequestHead, _ target: RequestTarget) -> Identity {
        let tokens = (base as? ApplicationAuthorizer).map { $0.tokens } ?? base
        return (try? tokens?.identify(head, target: target)) ?? .anonymous
    }

    /// Allows everything below open routes; other paths are left to `base`.
    public func refusal(
        of identity: Identity, _ operation: AccessOperation, at path: PathSegments?
    ) -> AuthorizationRefusal? {
        if path.map({ isOpen($0.segments) }) ?? (identity == .anonymous && hasOpenRoutes) { return nil }
        return base.refusal(of: identity, operation, at: path)
    }

    /// The decoded segments of a path, and those that an application may see.
    private static func segments(_ path: String) -> (segments: [String], normalized: [String])? {
        if let valid = try? PathSegments(decoding: path).segments { return (valid, valid) }
        return PathSegments.decodeForwarded(path)
    }

    private var hasOpenRoutes: Bool { routes.contains { $0.isOpen } }

    /// Whether the route of a path is open. The paths of the server itself belong to no route, not even to `/`.
    private func isOpen(_ path: [String]) -> Bool {
        !own.contains(path) && routes.first { path.starts(with: $0.path) }?.isOpen == true
    }
}

/// The authorizer of everything but routes on a server without tokens.
package struct RoutesOnlyAuthorizer: Authorizer {
    private let isAnonymousAllowed: Bool

    /// - Parameter isAnonymousAllowed: whether all clients may do everything.
    package init(isAnonymousAllowed: Bool) { self.isAnonymousAllowed = isAnonymousAllowed }

    package func identify(_ head: RequestHead, target: RequestTarget) throws(AuthorizationRefusal) -> Identity {
        guard isAnonymousAllowed else { throw Self.refusal }
        return .anonymous
    }

    package func refusal(
        of identity: Identity, _ operation: AccessOperation, at path: PathSegments?
    ) -> AuthorizationRefusal? { isAnonymousAllowed ? nil : Self.refusal }

    private static let refusal = AuthorizationRefusal.forbidden(
        code: "routes-only",
        detail: "This server serves only its routes. To use its files, start it with --token-file, --auth-url or"
            + " --allow-anonymous.")
}
