import HTTPSemantics

/// What a request asks of the upload protocol (draft section 4; the order is that of the drafts' detection algorithm).
///
/// Whether the target resource takes uploads at all, and by which methods, is for the target resource to say.
package enum RequestKind: Sendable, Hashable {
    /// `HEAD` or `GET` on an upload resource.
    case retrieval
    /// `PATCH` on an upload resource.
    case append
    /// `DELETE` on an upload resource.
    case cancellation
    /// `OPTIONS` anywhere: no target resource here takes a representation by it.
    case discovery
    /// A request to a target resource that states whether its content is the whole representation.
    case creation(isComplete: Bool)
    /// Ordinary HTTP.
    case plain
    /// A method that upload resources do not know.
    case notAllowed

    package init(method: Method, addressesUpload: Bool, fields: Fields, dialect: Dialect) {
        if method == .options {
            self = .discovery
        } else if addressesUpload {
            switch method {
            case .head, .get: self = .retrieval
            case .patch: self = .append
            case .delete: self = .cancellation
            default: self = .notAllowed
            }
        } else if !method.isSafe, method != .delete, method != .connect,
            let complete = dialect.completeness(of: fields)
        {
            self = .creation(isComplete: complete)
        } else {
            self = .plain
        }
    }
}
