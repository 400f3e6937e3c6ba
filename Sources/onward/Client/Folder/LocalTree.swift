import SystemCalls

/// The files below a directory of this machine, in the order in which the file system lists them. No symbolic link is
/// followed. Memory is needed only for the directories between the first one and the current one.
struct LocalTree {
    /// A regular file.
    struct File: Sendable {
        /// The path relative to the first directory.
        let path: FilePath
        let name: FilePath
        /// The directory that contains the file.
        let directory: FileDescriptor
        /// The attributes that the file had when it was found.
        let status: FileStatus
        /// Whether the server has no folder for the directory that contains the file.
        let isFolderMissing: Bool
    }

    enum Item {
        /// A directory whose entries follow. ``LocalTree/isFolderMissing`` can be set now.
        case directory(FilePath)
        case file(File)
        /// An entry that cannot be sent, with the reason.
        case omitted(FilePath, String)
        case problem(FilePath, CommandFailure)
    }

    private struct Level {
        let path: FilePath
        let directory: FileDescriptor
        let stream: DirectoryStream
        var isFolderMissing: Bool
    }

    /// The maximum depth of nested folders, in uploads and in downloads (``RemoteTree``). Each level of an upload needs two
    /// descriptors.
    static let maxDepth = 128

    private var levels: [Level] = []
    private var hasBegun = false

    /// Starts at an open directory.
    init(_ directory: FileDescriptor) throws(Errno) {
        levels = [Level(path: "", directory: directory, stream: try DirectoryStream(directory), isFolderMissing: false)]
    }

    /// Whether the server has no folder for the current directory. A subdirectory begins with the value of its parent.
    var isFolderMissing: Bool {
        get { levels.last?.isFolderMissing ?? false }
        set { if !levels.isEmpty { levels[levels.count - 1].isFolderMissing = newValue } }
    }

    /// Returns the next item; `nil` at the end. An entry that is removed during the iteration is left out.
    mutating func next() -> Item? {
        if !hasBegun {
            hasBegun = true
            return .directory("")
        }
        while let level = levels.last {
            let entry: (name: FilePath, kind: DirectoryStream.Kind)?
            do throws(Errno) {
                entry = try level.stream.next { (FilePath($0), $1) }
            } catch {
                levels.removeLast()
                return .problem(level.path, .unreadable("The directory cannot be read: \(error)."))
            }
            guard let entry else {
                levels.removeLast()
                continue
            }
            if let item = item(entry.name, entry.kind, in: level) { return item }
        }
        return nil
    }

    private mutating func item(_ name: FilePath, _ kind: DirectoryStream.Kind, in level: Level) -> Item? {
        let path = level.path.isEmpty ? name : level.path.appending(name)
        if kind == .directory { return enter(name, path, in: level) }
        let status: FileStatus
        do throws(Errno) { status = try level.directory.status(at: name) } catch {
            return error == .noSuchFile ? nil : .problem(path, .unreadable("The file cannot be read: \(error)."))
        }
        switch status.kind {
        case .regular:
            return .file(
                File(
                    path: path, name: name, directory: level.directory, status: status,
                    isFolderMissing: level.isFolderMissing))
        case .directory: return enter(name, path, in: level)
        case .symbolicLink: return .omitted(path, "a symbolic link is not followed")
        case .pipe, .socket, .device: return .omitted(path, "only regular files can be sent")
        }
    }

    private mutating func enter(_ name: FilePath, _ path: FilePath, in level: Level) -> Item? {
        guard levels.count <= Self.maxDepth else {
            return .problem(path, .nestedTooDeeply)
        }
        do throws(Errno) {
            let directory = try level.directory.openDirectory(named: name)
            levels.append(
                Level(
                    path: path, directory: directory, stream: try DirectoryStream(directory),
                    isFolderMissing: level.isFolderMissing))
            return .directory(path)
        } catch {
            switch error {
            case .noSuchFile: return nil
            // Another file has got the name.
            case .notDirectory, .tooManySymbolicLinks: return item(name, .unknown, in: level)
            default: return .problem(path, .unreadable("The directory cannot be opened: \(error)."))
            }
        }
    }

    /// The number and the sizes of the files below a directory, as far as it can be read.
    /// - Parameter shouldContinue: called before each item is counted; `false` ends the count.
    /// - Returns: `nil` if the count was ended, or if the directory cannot be opened.
    static func total(of directory: FileDescriptor, while shouldContinue: () -> Bool) -> GroupProgress.Total? {
        guard var tree = try? LocalTree(directory) else { return nil }
        var total = GroupProgress.Total(count: 0, bytes: 0)
        while let item = tree.next() {
            guard shouldContinue() else { return nil }
            guard case .file(let file) = item else { continue }
            total.count += 1
            total.bytes += file.status.size
        }
        return total
    }
}

extension CommandFailure {
    /// There are more folders than ``LocalTree/maxDepth`` between the first one and a file.
    static let nestedTooDeeply = CommandFailure(
        .unavailable, "name-unusable", "More than \(LocalTree.maxDepth) folders are nested.")

    fileprivate static func unreadable(_ message: String) -> CommandFailure {
        CommandFailure(.noSource, "source-unavailable", message)
    }
}
