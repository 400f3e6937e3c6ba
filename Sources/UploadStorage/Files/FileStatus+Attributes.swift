import Digests
import HTTPSemantics
import SystemCalls

extension FileStatus.Time {
    /// - Parameter nanoseconds: the time in nanoseconds since 1970.
    init(nanoseconds: Int64) {
        self.init(seconds: nanoseconds / 1_000_000_000, nanoseconds: nanoseconds % 1_000_000_000)
    }
}

extension FileStatus {
    /// Returns the attributes of a published file. The entity tag is strong: every change of content or attributes
    /// changes the time of the last change, and no two publications have the same inode and the same time.
    func publishedAttributes() throws(Errno) -> PublishedFile.Attributes {
        let opaque = Self.hexadecimal([
            UInt64(bitPattern: Int64(inode)), UInt64(bitPattern: size), UInt64(bitPattern: modified.seconds),
            UInt64(bitPattern: modified.nanoseconds), UInt64(bitPattern: changed.seconds),
            UInt64(bitPattern: changed.nanoseconds),
        ])
        guard let tag = EntityTag(opaque: opaque) else { throw .invalidArgument }
        return PublishedFile.Attributes(
            size: size, modifiedSeconds: modified.seconds, modifiedNanoseconds: modified.nanoseconds, entityTag: tag)
    }

    /// The numbers in hexadecimal with "-" between them. Every download needs this text, so it is written with one
    /// allocation.
    private static func hexadecimal(_ numbers: [UInt64]) -> String {
        String(unsafeUninitializedCapacity: 17 * numbers.count) { buffer in
            guard let start = buffer.baseAddress else { return 0 }
            var end = 0
            for number in numbers {
                if end > 0 {
                    start[end] = UInt8(ascii: "-")
                    end += 1
                }
                number.writeHexadecimal(number.hexadecimalWidth, to: start + end)
                end += number.hexadecimalWidth
            }
            return end
        }
    }

    /// A text that distinguishes this file from all others of its file system.
    var identity: String { String(inode, radix: 16) }
}
