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
            var end = 0
            for number in numbers {
                if end > 0 {
                    buffer[end] = UInt8(ascii: "-")
                    end += 1
                }
                let digits = max(1, (67 - number.leadingZeroBitCount) / 4)
                for place in (0..<digits).reversed() {
                    let digit = UInt8(truncatingIfNeeded: number >> (4 * place)) & 0xF
                    buffer[end] = digit < 10 ? 0x30 + digit : 0x57 + digit
                    end += 1
                }
            }
            return end
        }
    }

    /// A text that distinguishes this file from all others of its file system.
    var identity: String { String(inode, radix: 16) }
}
