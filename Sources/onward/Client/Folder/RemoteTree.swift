import Foundation
import ResumableTransfer
import SystemCalls

/// The files below a folder of a server. When a folder is found, a directory for it is created on this machine. For the
/// current folder and each folder above it, one page of the listing is in memory.
struct RemoteTree {
    struct File: Sendable {
        /// The path relative to the first folder.
        let path: FilePath
        let name: FilePath
        /// The directory for the file.
        let directory: FileDescriptor
        /// The size in the list, in bytes.
        let size: Int64?
        /// The modification time in the list, in seconds since 1970.
        let modified: Int64?
    }

    enum Item {
        case file(File)
        case problem(FilePath, CommandFailure)
    }

    private struct Level {
        let path: FilePath
        let directory: FileDescriptor
        var entries: ArraySlice<FolderListing.Entry> = []
        /// The URI of the next page.
        var next: String?
    }

    private let folder: FolderTransfer
    private var levels: [Level]

    /// Starts at the folder of the command.
    /// - Parameter directory: the directory for its files.
    init(_ folder: FolderTransfer, _ directory: FileDescriptor) {
        self.folder = folder
        levels = [Level(path: "", directory: directory, next: folder.url.entry("").request)]
    }

    /// Returns the next item; `nil` at the end. If the list of a folder cannot be read, the method returns a problem,
    /// and continues after this folder in the next call.
    mutating func next() async -> Item? {
        while let level = levels.last {
            if let entry = levels[levels.count - 1].entries.popFirst() {
                if let item = item(entry, in: level) { return item }
            } else if let uri = level.next {
                do throws(CommandFailure) {
                    let page = try await folder.listing(uri)
                    levels[levels.count - 1].entries = page.entries[...]
                    levels[levels.count - 1].next = page.next
                } catch {
                    levels.removeLast()
                    return .problem(level.path, error)
                }
            } else {
                levels.removeLast()
            }
        }
        return nil
    }

    private mutating func item(_ entry: FolderListing.Entry, in level: Level) -> Item? {
        let name: FilePath
        do throws(CommandFailure) { name = try entry.fileName() } catch { return .problem(level.path, error) }
        let path = level.path.isEmpty ? name : level.path.appending(name)
        switch entry.type {
        case "file":
            let modified = entry.modificationTime(now: SystemClock.realtimeSeconds())
            return .file(
                File(path: path, name: name, directory: level.directory, size: entry.size, modified: modified))
        case "directory":
            guard levels.count <= LocalTree.maxDepth else { return .problem(path, .nestedTooDeeply) }
            do throws(Errno) {
                let directory = try level.directory.createDirectory(named: name)
                levels.append(
                    Level(path: path, directory: directory, next: folder.url.entry(path, isFolder: true).request))
                return nil
            } catch {
                return .problem(path, .destination(error, of: "directory"))
            }
        default:
            return .problem(
                path, CommandFailure(.unavailable, "listing-unusable", "It is neither a file nor a directory."))
        }
    }
}

extension CommandFailure {
    /// The failure to create a file or directory.
    static func destination(_ error: Errno, of kind: String) -> CommandFailure {
        let reason =
            switch error {
            case .notDirectory, .tooManySymbolicLinks:
                "a file or a symbolic link has this name, and symbolic links are not followed"
            default: "\(error)"
            }
        return CommandFailure(.inputOutput, "destination-unusable", "The \(kind) cannot be written: \(reason).")
    }
}
