import HTTPSemantics

/// The operation of the upload protocol that a request performs (draft section 4, in the order of its detection
/// algorithm).
///
/// The target resource decides whether it accepts uploads, and with which methods.
package enum RequestKind: Sendable, Hashable {
    /// `HEAD` or `GET` on an upload resource.
    case retrieval
    /// `PATCH` on an upload resource.
    case append
    /// `DELETE` on an upload resource.
    case cancellation
    /// `OPTIONS` on any resource.
    case discovery
    /// A request to a target resource that states whether its content is the complete representation.
    case creation(isComplete: Bool)
    /// A request that does not use the upload protocol.
    case plain
    /// A request to an upload resource with a method that upload resources do not support.
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
