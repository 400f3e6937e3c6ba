/// The paths that the server uses itself. They belong to no other handler, not even to one for all paths.
package struct OwnPaths: Sendable {
    /// The first segments below the prefix.
    private static let names = ["files", "uploads", "healthz", "readyz", "metrics", "onward"]

    private let prefix: [String]

    /// - Parameter prefix: ``ServerConfiguration/ownPrefix``.
    package init(_ prefix: String) { self.prefix = prefix.split(separator: "/").map(String.init) }

    /// The own path that is equal to this one or above it; `nil` if there is none.
    package func path(of segments: [String]) -> String? {
        contains(segments) ? segments.prefix(prefix.count + 1).reduce("") { $0 + "/" + $1 } : nil
    }

    /// Whether the path is an own path or below one.
    package func contains(_ segments: [String]) -> Bool {
        segments.count > prefix.count && segments.starts(with: prefix) && Self.names.contains(segments[prefix.count])
    }

    /// Whether the path is an own path of every server, or below one. Files are those of the command only.
    func containsServerResource(_ segments: [String]) -> Bool {
        contains(segments) && segments[prefix.count] != "files"
    }

    /// Whether the path is that of the upload resources or below it.
    package func isUpload(_ segments: [String]) -> Bool {
        segments.count > prefix.count && segments.starts(with: prefix) && segments[prefix.count] == "uploads"
    }
}
