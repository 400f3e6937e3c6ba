import HTTPSemantics

/// The operation of a request on a target resource.
public enum Operation: Sendable, Hashable, CaseIterable {
    /// Read the methods and limits (`OPTIONS`).
    case discover
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
