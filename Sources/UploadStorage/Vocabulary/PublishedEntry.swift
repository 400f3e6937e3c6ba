/// One entry of a directory of published files.
package struct PublishedEntry: Sendable, Hashable {
    package var name: String
    package var isDirectory: Bool
    /// Bytes; 0 for directories.
    package var size: Int64
    /// Seconds since 1970 of the last change.
    package var modifiedSeconds: Int64

    package init(name: String, isDirectory: Bool, size: Int64, modifiedSeconds: Int64) {
        self.name = name
        self.isDirectory = isDirectory
        self.size = size
        self.modifiedSeconds = modifiedSeconds
    }
}
