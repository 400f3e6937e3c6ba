/// Who pays for a published file.
package struct FileRecord: Sendable, Hashable {
    package var name: String
    package var principal: String
    /// Bytes.
    package var size: Int64
}
