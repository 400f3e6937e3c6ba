import HTTPSemantics
import SystemCalls

extension FileStatus.Time {
    /// - Parameter nanoseconds: since 1970.
    init(nanoseconds: Int64) {
        self.init(seconds: nanoseconds / 1_000_000_000, nanoseconds: nanoseconds % 1_000_000_000)
    }
}

extension FileStatus {
    /// Strong, as every change of content or attributes moves the time of the last change, and every publication has
    /// an inode or a time of its own.
    func publishedAttributes() throws(Errno) -> PublishedFile.Attributes {
        let parts = [
            UInt64(bitPattern: Int64(inode)), UInt64(bitPattern: size), UInt64(bitPattern: modified.seconds),
            UInt64(bitPattern: modified.nanoseconds), UInt64(bitPattern: changed.seconds),
            UInt64(bitPattern: changed.nanoseconds),
        ]
        let opaque = parts.map { String($0, radix: 16) }.joined(separator: "-")
        guard let tag = EntityTag(opaque: opaque) else { throw .invalidArgument }
        return PublishedFile.Attributes(
            size: size, modifiedSeconds: modified.seconds, modifiedNanoseconds: modified.nanoseconds, entityTag: tag)
    }

    /// What distinguishes one file of a file system from all others.
    var identity: String { String(inode, radix: 16) }
}
