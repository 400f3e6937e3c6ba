import SystemCalls

/// The directory of one store: its parts, and the lock that prevents other servers from using the directory until
/// ``unlock()``.
final class DataDirectory: Sendable {
    static let catalogName = "onward.sqlite"
    /// The directory of requests whose outcome is unknown.
    static let retainedName = "retained"

    let root: FileDescriptor
    let files: FileDescriptor
    let uploads: FileDescriptor
    private let lock: Monitor<FileDescriptor?>

    /// Creates the missing parts of the directory, and its parent directories.
    init(path: String) throws(StoreError) {
        root = try Self.openRoot(path)
        let isNew = try Self.requireOwn(root)
        let lock = try Self.translating { [root] () throws(Errno) in
            try root.open(at: "lock", [.readWrite, .create, .noFollow])
        }
        guard try Self.translating({ () throws(Errno) in try lock.tryLock() }) else { throw .inUse }
        self.lock = Monitor(lock)
        files = try Self.openPart("files", of: root)
        uploads = try Self.openPart("uploads", of: root)
        let isOneFileSystem = try Self.translating { [root, files, uploads] () throws(Errno) in
            let devices = [try root.status().device, try files.status().device, try uploads.status().device]
            return Set(devices).count == 1
        }
        guard isOneFileSystem else {
            throw .unusableRoot("the directory, its files/ and its uploads/ must be in one file system")
        }
        if isNew { try requireNoOrphans() }
        // The database is created here with mode 0600, because SQLite gives its other files the permissions of the
        // database.
        try Self.translating { [root] () throws(Errno) in
            _ = try root.open(at: Self.catalogName, [.readWrite, .create, .noFollow])
            try root.synchronize()
        }
    }

    /// Opens an existing directory, and creates nothing.
    init(existing path: String) throws(StoreError) {
        root = try Self.translating { () throws(Errno) in
            try FileDescriptor.open(path, [.readOnly, .directory])
        }
        let names = try Self.translating { [root] () throws(Errno) in try root.entryNames() }
        guard names.contains(Self.catalogName) else {
            throw .unusableRoot("it is not a data directory of onward, because it contains no \(Self.catalogName)")
        }
        // If the lock file is missing, no server has used the directory, or the directory is a copy.
        let lock = try Self.translating { [root] () throws(Errno) in
            names.contains("lock") ? try root.open(at: "lock", [.readOnly, .noFollow]) : nil
        }
        if let lock {
            guard try Self.translating({ () throws(Errno) in try lock.tryLock() }) else { throw .inUse }
        }
        self.lock = Monitor(lock)
        files = try Self.openExisting("files", of: root)
        uploads = try Self.openExisting("uploads", of: root)
    }

    private static func openExisting(
        _ name: String, of root: FileDescriptor
    ) throws(StoreError) -> FileDescriptor {
        try translating(in: name) { () throws(Errno) in try root.open(at: name, [.readOnly, .directory, .noFollow]) }
    }

    /// Removes the permissions of other users, after the directory has been identified as a data directory.
    func secure() throws(StoreError) {
        try Self.translating { [root] () throws(Errno) in
            // The catalog must not be opened here: closing any descriptor of the catalog ends the locks of SQLite
            // (fcntl(2)), and another program that closes the catalog would then remove the log that this process uses.
            try root.setPermissions(0o600, at: Self.catalogName)
            // Only the superuser can use a directory of another user. The permissions of such a directory do not
            // change.
            if try root.status().owner == ProcessControl.effectiveUser { try root.setPermissions(0o700) }
        }
    }

    /// Opens the directory of retained bytes, which is created if it is missing.
    func retained() throws(Errno) -> FileDescriptor {
        do throws(Errno) {
            try root.makeDirectory(at: Self.retainedName)
            try root.synchronize()
        } catch { if error != .fileExists { throw error } }
        return try root.open(at: Self.retainedName, [.readOnly, .directory, .noFollow])
    }

    /// Releases the directory for other processes.
    func unlock() { lock.withLock { $0 = nil } }

    private static func openRoot(_ path: String) throws(StoreError) -> FileDescriptor {
        try translating { () throws(Errno) in
            do throws(Errno) {
                return try FileDescriptor.open(path, [.readOnly, .directory])
            } catch {
                guard error == .noSuchFile else { throw error }
            }
            try makeDirectories(path)
            return try FileDescriptor.open(path, [.readOnly, .directory])
        }
    }

    /// Makes a directory and its missing parent directories, durably.
    private static func makeDirectories(_ path: String) throws(Errno) {
        do throws(Errno) {
            try FileDescriptor.makeDirectory(path)
        } catch {
            if error == .fileExists { return }
            let parent = path.split(separator: "/", omittingEmptySubsequences: true).dropLast().joined(separator: "/")
            guard error == .noSuchFile, !parent.isEmpty else { throw error }
            try makeDirectories((path.hasPrefix("/") ? "/" : "") + parent)
            try FileDescriptor.makeDirectory(path)
        }
        try FileDescriptor.open(path + "/..", [.readOnly, .directory]).synchronize()
    }

    /// Rejects a directory that contains other files, because ``secure()`` would remove the permissions of their users.
    /// - Returns: whether the directory contains no catalog yet.
    private static func requireOwn(_ root: FileDescriptor) throws(StoreError) -> Bool {
        let (owner, names) = try translating { () throws(Errno) in
            (try root.status().owner, try root.entryPaths())
        }
        let user = ProcessControl.effectiveUser
        guard owner == user || user == 0 else {
            throw .unusableRoot("its owner is user \(owner), but the server runs as user \(user)")
        }
        if names.contains(FilePath(catalogName)) { return false }
        let expected = Set(["files", "uploads", retainedName, "lock", "lost+found"].map { FilePath($0) })
        if let other = names.filter({ !expected.contains($0) }).map(\.description).min() {
            throw .unusableRoot(
                "it is not a data directory of onward, because it contains \(other). Use an empty or a new directory"
            )
        }
        return true
    }

    /// Requires that `uploads/` is empty: without a catalog the recovery would remove the bytes of unfinished uploads.
    private func requireNoOrphans() throws(StoreError) {
        let names = try Self.translating { [uploads] () throws(Errno) in try uploads.entryPaths() }
        guard names.isEmpty else {
            throw .unusableRoot(
                """
                \(Self.catalogName) is missing, and uploads/ contains the bytes of unfinished uploads. Restore the catalog, \
                or empty uploads/ to discard these uploads
                """)
        }
    }

    private static func openPart(
        _ name: String, of root: FileDescriptor
    ) throws(StoreError) -> FileDescriptor {
        try translating(in: name) { () throws(Errno) in
            do throws(Errno) { try root.makeDirectory(at: name) } catch { if error != .fileExists { throw error } }
            return try root.open(at: name, [.readOnly, .directory, .noFollow])
        }
    }

    /// Runs system calls, and converts their errors to a ``StoreError`` without the path of the directory, which the
    /// caller knows.
    /// - Parameter name: the part of the directory that the calls use; `nil` for the directory itself.
    private static func translating<Result>(
        in name: String? = nil, _ body: () throws(Errno) -> Result
    ) throws(StoreError) -> Result {
        do throws(Errno) {
            return try body()
        } catch {
            switch error {
            case .notDirectory, .tooManySymbolicLinks: throw .unusableRoot("\(name ?? "it") is not a directory")
            default: throw .unusableRoot(name.map { "\($0): \(error)" } ?? "\(error)")
            }
        }
    }
}
