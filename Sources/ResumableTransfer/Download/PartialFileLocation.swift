import SystemCalls

/// The directory of a download's partial file, and the name that the file gets when it is complete.
struct PartialFileLocation: Sendable {
    let directory: FileDescriptor
    /// The path of the directory, without a slash at its end.
    let path: FilePath
    /// The name that the file gets when it is complete; `nil` in the storage directory.
    let destinationName: FilePath?

    /// Opens the directory of a destination.
    /// - Returns: `nil` if there is no such directory.
    /// - Throws: `destinationUnusable`, `storageUnusable`.
    static func open(
        _ destination: DownloadDestination, storage: TransferStorage
    ) throws(TransferError) -> PartialFileLocation? {
        guard let file = destination.path else {
            return PartialFileLocation(directory: try storage.open(), path: storage.path, destinationName: nil)
        }
        guard !file.isEmpty else {
            throw TransferError(.destinationUnusable, "The destination must be a path or a file URL.")
        }
        let name = file.lastComponent
        guard file.isAbsolute, !file.hasNUL, !["", ".", ".."].contains(name) else {
            throw TransferError(.destinationUnusable, "\(file) cannot be the name of a file.")
        }
        let path = file.directory
        do throws(Errno) {
            var directory: FileDescriptor
            if let root = destination.root {
                guard let relative = path.relative(to: root) else { throw .invalidArgument }
                directory = try FileDescriptor.open(root, [.readOnly, .directory]).openDirectory(beneath: relative)
            } else {
                directory = try FileDescriptor.open(path, [.readOnly, .directory])
            }
            return PartialFileLocation(directory: directory, path: path, destinationName: name)
        } catch {
            if error == .noSuchFile { return nil }
            throw TransferError(.destinationUnusable, "\(file) cannot be written.", underlying: error)
        }
    }

    /// The regular file that the download would replace; `nil` if there is none. If the name is a symbolic link, the
    /// link itself is replaced.
    /// - Throws: if something is there that a file must not replace: a directory, a device, a FIFO, or a link to one.
    func existing() throws(Errno) -> FileStatus? {
        guard let destinationName else { return nil }
        var status: FileStatus
        do throws(Errno) {
            status = try directory.status(at: destinationName)
        } catch {
            if error == .noSuchFile { return nil }
            throw error
        }
        let isLink = status.isSymbolicLink
        if isLink {
            guard let resolved = try? path.appending(destinationName).resolved() else { return nil }
            status = try resolved.status()
        }
        if status.isDirectory { throw .isDirectory }
        guard status.isRegular else { throw .noSuchDevice }
        return isLink ? nil : status
    }
}
