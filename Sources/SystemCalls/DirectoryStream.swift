import Glibc

/// The entries of a directory, read in steps (readdir(3)): the memory that it needs does not depend on their number.
/// Used by one thread at a time.
package final class DirectoryStream {
    /// What the directory itself records of an entry; a file system that records nothing gives `unknown`.
    package enum Kind: Sendable, Hashable {
        case regular, directory, other, unknown
    }

    // Owned by this object from `init` to `deinit`.
    private let stream: OpaquePointer

    /// Reads from the first entry on, whatever else reads the directory.
    package init(_ directory: FileDescriptor) throws(Errno) {
        // An open file description of its own: duplicates share their position.
        let number = try retryingOnInterrupt {
            openat(directory.rawValue, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        }
        guard let stream = fdopendir(number) else {
            let error = Errno.current
            close(number)
            throw error
        }
        self.stream = stream
    }

    deinit { closedir(stream) }

    /// Calls `body` with the next entry other than "." and "..": the bytes of its name, valid during the call alone, and
    /// its kind. Nil at the end. There is no order.
    ///
    /// An entry that exists during the reading is given once; of those that are made or removed meanwhile each may be
    /// given or not.
    package func next<Result>(_ body: (UnsafeRawBufferPointer, Kind) -> Result) throws(Errno) -> Result? {
        while true {
            errno = 0
            guard let entry = readdir(stream) else {
                if errno != 0 { throw Errno.current }
                return nil
            }
            let kind: Kind =
                switch Int(entry.pointee.d_type) {
                case Int(DT_REG): .regular
                case Int(DT_DIR): .directory
                case Int(DT_UNKNOWN): .unknown
                default: .other
                }
            let result = withUnsafeBytes(of: &entry.pointee.d_name) { bytes -> Result? in
                let name = UnsafeRawBufferPointer(start: bytes.baseAddress, count: Self.length(of: bytes))
                return Self.isItselfOrParent(name) ? nil : body(name, kind)
            }
            if let result { return result }
        }
    }

    private static func length(of name: UnsafeRawBufferPointer) -> Int {
        guard let start = name.baseAddress else { return 0 }
        return strnlen(start.assumingMemoryBound(to: CChar.self), name.count)
    }

    private static func isItselfOrParent(_ name: UnsafeRawBufferPointer) -> Bool {
        let dot = UInt8(ascii: ".")
        return name.count == 1 && name[0] == dot || name.count == 2 && name[0] == dot && name[1] == dot
    }
}
