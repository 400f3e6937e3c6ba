/// One entry of a directory of published files.
public struct PublishedEntry: Sendable, Hashable {
    public var name: String
    public var isDirectory: Bool
    /// Bytes; 0 for directories.
    public var size: Int64
    /// Seconds since 1970 of the last change.
    public var modifiedSeconds: Int64

    public init(name: String, isDirectory: Bool, size: Int64, modifiedSeconds: Int64) {
        self.name = name
        self.isDirectory = isDirectory
        self.size = size
        self.modifiedSeconds = modifiedSeconds
    }
}
