import SystemCalls

/// The directory of one store: its parts, and the lock that keeps other servers out until ``unlock()``.
final class DataDirectory: Sendable {
    static let catalogueName = "onward.sqlite"

    let root: FileDescriptor
    let files: FileDescriptor
    let uploads: FileDescriptor
    private let lock: Monitor<FileDescriptor?>

    /// Makes what is missing, the directories above it included.
    init(path: String) throws(StoreError) {
        root = try Self.openRoot(path)
        let lock = try Self.translating(path) { [root] () throws(Errno) in
            try root.open(at: "lock", [.readWrite, .create, .noFollow])
        }
        guard try Self.translating(path, { () throws(Errno) in try lock.tryLock() }) else { throw .inUse }
        self.lock = Monitor(lock)
        files = try Self.openPart("files", of: root, path)
        uploads = try Self.openPart("uploads", of: root, path)
        let isOneFileSystem = try Self.translating(path) { [root, files, uploads] () throws(Errno) in
            let devices = [try root.status().device, try files.status().device, try uploads.status().device]
            return Set(devices).count == 1
        }
        guard isOneFileSystem else {
            throw .unusableRoot("\(path), files and uploads in it must lie in one file system")
        }
        // SQLite gives its other files the permissions of the database.
        try Self.translating(path) { [root] () throws(Errno) in
            let database = try root.open(at: Self.catalogueName, [.readWrite, .create, .noFollow])
            try database.setPermissions(0o600)
            try root.setPermissions(0o700)
            try root.synchronize()
        }
    }

    /// Lets others use the directory.
    func unlock() { lock.withLock { $0 = nil } }

    private static func openRoot(_ path: String) throws(StoreError) -> FileDescriptor {
        try translating(path) { () throws(Errno) in
            do throws(Errno) {
                return try FileDescriptor.open(path, [.readOnly, .directory])
            } catch {
                guard error == .noSuchFile else { throw error }
            }
            try makeDirectories(path)
            return try FileDescriptor.open(path, [.readOnly, .directory])
        }
    }

    /// Like `mkdir -p`.
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
    }

    private static func openPart(
        _ name: String, of root: FileDescriptor, _ path: String
    ) throws(StoreError) -> FileDescriptor {
        try translating("\(path)/\(name)") { () throws(Errno) in
            do throws(Errno) { try root.makeDirectory(at: name) } catch { if error != .fileExists { throw error } }
            return try root.open(at: name, [.readOnly, .directory, .noFollow])
        }
    }

    private static func translating<Result>(
        _ path: String, _ body: () throws(Errno) -> Result
    ) throws(StoreError) -> Result {
        do {
            return try body()
        } catch {
            switch error {
            case .notDirectory, .tooManySymbolicLinks: throw .unusableRoot("\(path) is not a directory")
            case .accessDenied, .notPermitted: throw .unusableRoot("\(path) cannot be written: \(error)")
            case .readOnlyFileSystem: throw .unusableRoot("\(path) lies in a read-only file system")
            default: throw .unusableRoot("\(path): \(error)")
            }
        }
    }
}
