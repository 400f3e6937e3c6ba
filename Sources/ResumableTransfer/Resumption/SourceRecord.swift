import SystemCalls

/// Identifies the source of an upload.
struct SourceRecord: Sendable, Hashable, Codable {
    /// The properties that identify one state of one file.
    struct File: Sendable, Hashable, Codable {
        /// The absolute path without symbolic links.
        var path: FilePath
        /// The time of the last change of the content, in nanoseconds since 1970.
        var modified: Int64
        var inode: UInt64
        /// This value is only for information. It is not compared, because it may be different after a restart of the
        /// machine.
        var device: UInt64
        var owner: UInt32
    }

    var file: File?
    /// The size in bytes; `nil` if it was unknown.
    var size: Int64?
    /// SHA-256 over parts of the content, in hexadecimal. The parts depend on the kind of source.
    var sample: String?

    var isValid: Bool {
        if let size, size < 0 { return false }
        if let sample, sample.utf8.count != 64 { return false }
        guard let file else { return true }
        return file.path.isAbsolute && !file.path.containsNUL && size != nil && sample != nil
    }

    /// The differences which prove that the sources of both records have different bytes, for messages; empty if there
    /// are none.
    func differences(from other: SourceRecord) -> [String] {
        var found: [String] = []
        if let size, let theirs = other.size, size != theirs { found.append("size") }
        if let file, let theirs = other.file {
            // A change of the modification time is always a difference: equal samples prove nothing about the middle.
            if file.modified != theirs.modified { found.append("modification time") }
            if file.inode != theirs.inode { found.append("inode") }
            if sample != other.sample { found.append("content") }
        } else if file == nil, other.file == nil, let sample, let theirs = other.sample, sample != theirs {
            // If only one of the sources is a file, their samples are not compared.
            found.append("content")
        }
        return found
    }
}
