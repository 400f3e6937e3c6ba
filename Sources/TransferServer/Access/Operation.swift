import HTTPSemantics

/// What a request wants to do with a target resource.
public enum Operation: Sendable, Hashable, CaseIterable {
    /// Learn which methods and limits there are.
    case discover
    case read
    /// Read the server's metrics.
    case readMetrics
    /// Bring in a representation under a name that is free, or go on with, ask for, or cancel the upload of one.
    case create
    /// Replace or remove what exists.
    case write

    /// What a request without a representation wants.
    init(_ method: Method) {
        self = method == .options ? .discover : method.isSafe ? .read : .write
    }
}
