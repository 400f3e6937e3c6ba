import SystemCalls

/// A directory in which the application of one route gets complete files by their path.
///
/// The directory belongs to this server, and its group to the application. The group can enter the directory, but
/// neither list nor change it. Each file has the name `content` in a directory of its own below it. The name of that
/// directory is random, and the group can rename the file in it. A directory that the operator has marked with the
/// set-group-ID bit passes its group on, so the server needs no right to change groups.
struct HandoverDirectory: Sendable, Hashable {
    static let fileName = "content"
    /// The permissions of the directory of one file: the application can rename the file in it, but cannot list it.
    private static let filePlacePermissions: UInt32 = 0o730
    /// The permissions that the directory of a route must not have: those of others, and listing and changing by the
    /// group.
    private static let forbidden: UInt32 = 0o067
    private static let setGroup: UInt32 = 0o2000

    /// The absolute path.
    let path: String

    init(_ path: String) { self.path = path }

    /// Whether the path is absolute, has only visible ASCII characters, so that a field can contain it, and has no
    /// component that is empty, "." or "..".
    static func isValid(_ path: String) -> Bool {
        path.hasPrefix("/") && path.utf8.allSatisfy { 0x21...0x7E ~= $0 }
            && path.dropFirst().split(separator: "/", omittingEmptySubsequences: false).allSatisfy {
                !["", ".", ".."].contains($0)
            }
    }

    fileprivate func mistake(_ text: String) -> StoreError { .unusableHandover("handover=\(path): \(text)") }

    /// Opens the directory and verifies its permissions. It is opened for each file, so that a directory that was
    /// removed or replaced meanwhile is not used.
    func opened() throws(StoreError) -> (directory: FileDescriptor, status: FileStatus) {
        guard Self.isValid(path) else {
            throw mistake("give an absolute path of visible ASCII characters, without empty, '.' and '..' components")
        }
        let user = ProcessControl.effectiveUser
        let directory: FileDescriptor
        let status: FileStatus
        do throws(Errno) {
            directory = try FileDescriptor.open(path, [.readOnly, .directory])
            status = try directory.status()
        } catch {
            if error == .accessDenied, let status = try? FilePath(path).status(), status.owner != user {
                throw wrongOwner(status)
            }
            throw translated(error)
        }
        if status.owner != user && user != 0 { throw wrongOwner(status) }
        if status.permissions & Self.forbidden != 0 {
            throw mistake("its group can list or change it, or other users can access it; run: chmod 2710 \(path)")
        }
        if status.permissions & Self.setGroup == 0 && status.group != ProcessControl.effectiveGroup {
            throw mistake("new files in it would not get its group; run: chmod 2710 \(path)")
        }
        return (directory, status)
    }

    private func wrongOwner(_ status: FileStatus) -> StoreError {
        let user = ProcessControl.effectiveUser
        return mistake("its owner is user \(status.owner), but the server runs as user \(user): chown \(user) \(path)")
    }

    private func translated(_ error: Errno) -> StoreError {
        switch error {
        case .noSuchFile:
            mistake(
                "it does not exist; create it, with the group of the application: install -d -o"
                    + " \(ProcessControl.effectiveUser) -g GROUP -m 2710 \(path)")
        case .notDirectory: mistake("it is not a directory")
        case .crossDevice:
            mistake(
                "it is not in the same mount as the data directory, so files cannot have a hard link in it; use a"
                    + " directory beside the data directory, and give the service one writable path that contains both")
        case .noSpace, .quotaExceeded: .insufficientSpace(nil)
        default: mistake("\(error)")
        }
    }

    /// Gives a file a name in a new directory.
    /// - Parameters:
    ///   - name: the name of the file in `parent`.
    ///   - isDurable: whether the new name is on stable storage on return.
    func share(_ name: String, in parent: FileDescriptor, durably isDurable: Bool) throws(StoreError) -> SharedFile {
        let (directory, status) = try opened()
        let key = UploadID().text
        do throws(Errno) {
            try directory.makeDirectory(at: key)
            do throws(Errno) {
                let own = try directory.open(at: key, [.readOnly, .directory, .noFollow])
                // Another process may be removing the directory, because it looks as if an ended process had left it.
                guard try own.tryLock() else { throw .wouldBlock }
                if status.owner != ProcessControl.effectiveUser { try own.setOwner(status.owner) }
                try own.setPermissions(Self.filePlacePermissions)
                try parent.link(from: name, to: own, as: Self.fileName)
                let file = SharedFile(
                    path: "\(path)/\(key)/\(Self.fileName)", key: key, identity: try own.status(at: Self.fileName),
                    in: own, of: directory)
                if isDurable {
                    try own.synchronize()
                    try directory.synchronize()
                }
                return file
            } catch {
                Self.remove(key, of: directory)
                throw error
            }
        } catch { throw translated(error) }
    }

    /// Removes the files of processes that have ended.
    func removeLeftovers() throws(StoreError) {
        let (directory, status) = try opened()
        do throws(Errno) {
            let stream = try DirectoryStream(directory)
            while let name = try stream.next({ name, _ in String(validating: name, as: UTF8.self) }) {
                guard let name, UploadID(parsing: name) != nil,
                    let own = try? directory.open(at: name, [.readOnly, .directory, .noFollow]),
                    try own.status().owner == status.owner, try own.tryLock()
                else { continue }
                Self.remove(name, of: directory)
            }
            try directory.synchronize()
        } catch { throw translated(error) }
    }

    /// Removes the directory of one file. The application can have created other entries in it. They are removed, too,
    /// except directories that are not empty.
    fileprivate static func remove(_ key: String, of directory: FileDescriptor) {
        if let own = try? directory.open(at: key, [.readOnly, .directory, .noFollow]) {
            for name in (try? own.entryPaths()) ?? [] {
                do throws(Errno) { try own.unlink(at: name) } catch { try? own.removeDirectory(at: name) }
            }
        }
        try? directory.removeDirectory(at: key)
    }
}

/// A file that an application can read and rename until ``remove()``.
package final class SharedFile: Sendable {
    /// The permissions of the file. The application is neither its owner nor in its group; only it can enter the
    /// directory of the file.
    static let permissions: UInt32 = 0o444

    /// The absolute path, in visible ASCII characters.
    package let path: String
    private let key: String
    private let identity: FileStatus
    /// The directory of the file. It is locked while this object exists.
    private let directory: FileDescriptor
    private let parent: FileDescriptor

    fileprivate init(
        path: String, key: String, identity: FileStatus, in directory: FileDescriptor, of parent: FileDescriptor
    ) {
        self.path = path
        self.key = key
        self.identity = identity
        self.directory = directory
        self.parent = parent
    }

    /// Removes the file.
    /// - Returns: whether it was still there. Otherwise the application has moved it.
    package func remove() -> Bool {
        defer { HandoverDirectory.remove(key, of: parent) }
        guard let status = try? directory.status(at: HandoverDirectory.fileName),
            status.inode == identity.inode, status.device == identity.device
        else { return false }
        // The application may rename the file before this call.
        return (try? directory.unlink(at: HandoverDirectory.fileName)) != nil
    }
}

extension FileBlobArea: SharingBlobArea {
    func prepare(_ directories: [String], root: String) throws(StoreError) {
        var mistakes: [String] = []
        var places: [(path: String, place: FilePath)] = []
        let data = try translating("resolve \(root)") { () throws(Errno) in try FilePath(root).resolved() }
        for path in directories {
            let handover = HandoverDirectory(path)
            do throws(StoreError) {
                _ = try handover.opened()
                let place = try translating("resolve \(path)") { () throws(Errno) in try FilePath(path).resolved() }
                if place.isInside(data) {
                    throw handover.mistake(
                        "it is in the data directory, which no other user can enter; use a directory beside it")
                }
                if let other = places.first(where: { place.isInside($0.place) || $0.place.isInside(place) }) {
                    throw handover.mistake(
                        "each route needs a directory of its own, but handover=\(other.path) is the same directory, or one"
                            + " contains the other")
                }
                places.append((path, place))
                try probe(handover)
                try handover.removeLeftovers()
            } catch .unusableHandover(let text) {
                mistakes.append(text)
            } catch {
                mistakes.append("handover=\(path): \(error)")
            }
        }
        if !mistakes.isEmpty { throw .unusableHandover(mistakes.joined(separator: "\n")) }
    }

    /// Shares a test file, because only an attempt shows whether two directories are in one mount.
    private func probe(_ handover: HandoverDirectory) throws(StoreError) {
        try translating("create a test file") { () throws(Errno) in
            _ = try directory.uploads.open(at: Self.probeName, [.readWrite, .create, .truncate, .noFollow])
        }
        defer { try? remove(Self.probeName) }
        _ = try handover.share(Self.probeName, in: directory.uploads, durably: false).remove()
    }

    func endWriting(_ blob: any Blob) throws(StoreError) {
        guard let blob = blob as? FileBlob else { throw .invalidState("the bytes are not in a file") }
        try translating("make the content of an upload read-only") { () throws(Errno) in try blob.endWriting() }
    }

    func share(_ name: String, in directory: String, durably isDurable: Bool) throws(StoreError) -> SharedFile {
        try HandoverDirectory(directory).share(name, in: self.directory.uploads, durably: isDurable)
    }
}

extension FilePath {
    /// Whether the path is that of a directory or of an entry below it. Both paths are absolute, without symbolic links.
    fileprivate func isInside(_ directory: FilePath) -> Bool {
        self == directory || directory == "/" || bytes.starts(with: directory.bytes + [UInt8(ascii: "/")])
    }
}
