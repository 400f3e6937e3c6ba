/// Which pages may embed a response without CORS: the values of `Cross-Origin-Resource-Policy` (the Fetch standard).
public enum ResourcePolicy: String, Sendable, Hashable, CaseIterable {
    /// Pages of the server's own origin.
    case sameOrigin = "same-origin"
    /// Pages of the same site, such as those of `app.example` for `files.app.example`.
    case sameSite = "same-site"
    /// Any page.
    case crossOrigin = "cross-origin"
}
