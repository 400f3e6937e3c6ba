import Glibc

/// Reads the entries of a directory one by one (readdir(3)), in constant memory. Use it from one thread at a time.
package final class DirectoryStream {
    /// The kind of an entry, as the directory stores it; `unknown` if the file system does not store kinds.
    package enum Kind: Sendable, Hashable {
        case regular, directory, other, unknown
    }

    // Owned by this object from `init` to `deinit`.
    private let stream: OpaquePointer

    /// Starts at the first entry, independently of other readers of the directory.
    package init(_ directory: FileDescriptor) throws(Errno) {
        // The directory is opened again, because duplicated descriptors share their position.
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

    /// Calls `body` with the name and the kind of the next entry other than "." and "..", in no particular order. The
    /// bytes of the name are valid only during the call. Returns nil at the end.
    ///
    /// An entry that exists during the entire iteration is returned once. An entry that is created or removed during
    /// the iteration may be missing.
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
