import SystemCalls

/// The reason why the directory of a store, or a file in it, cannot be used.
package enum StateError: Error, Sendable {
    /// The directory cannot be opened or created.
    case directoryUnusable(FilePath, Errno)
    /// The directory belongs to another user, or other users can write to it.
    case directoryNotPrivate(FilePath)
    /// The lock file at the path cannot be used.
    case lockUnusable(FilePath, Errno)
    /// The file at the path cannot be read, or other users could have written it.
    case fileUnusable(FilePath, reason: String)
    /// The file at the path does not contain a state of a supported version.
    case damaged(FilePath, reason: String)
    /// A process is running the transfer. The associated value is its ID, if that is known.
    case inUse(process: Int32?)
}

extension TransferError {
    init(_ error: StateError) {
        switch error {
        case .directoryUnusable(let path, let reason):
            self.init(.storageUnusable, "The directory \(path) for transfers cannot be used.", underlying: reason)
        case .directoryNotPrivate(let path):
            self.init(
                .storageUnusable,
                "The directory \(path) for transfers must belong to you and not be writable by others."
            )
        case .lockUnusable(let path, let reason):
            self.init(.storageUnusable, "The lock \(path) cannot be used.", underlying: reason)
        case .fileUnusable(let path, let reason), .damaged(let path, let reason):
            self.init(.resumeDataInvalid, "The state file \(path) \(reason).")
        case .inUse(let process):
            let who = process.map { "Process \($0)" } ?? "Another process"
            self.init(.inUse, "\(who) is already running this transfer.")
        }
    }
}
