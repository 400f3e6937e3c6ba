import SystemCalls

/// The directories below `files/`.
extension FileBlobArea {
    func makeDirectories(for name: PublishedName, durably isDurable: Bool) throws(StoreError) {
        if name.directory.segments.isEmpty { return }
        let epoch = directories.epoch
        var made: PublishedName.Directory?
        func make(_ path: PublishedName, in parent: FileDescriptor) throws(Errno) -> Bool {
            do throws(Errno) { try parent.makeDirectory(at: path.lastSegment) } catch {
                if error == .fileExists { return false }
                throw error
            }
            made = made ?? path.asDirectory
            return true
        }
        let chain = try walk(name.directory) { parent, path throws(Errno) in
            if !isDurable {
                _ = try make(path, in: parent)
                return
            }
            try directories.make(
                path.asDirectory, { () throws(Errno) in try make(path, in: parent) }, remove: removeDirectory)
        }
        guard isDurable else { return }
        try translating("synchronize directories") { () throws(Errno) in
            do throws(Errno) {
                // Every parent is synchronized: another thread may have made a directory without having synchronized
                // its parent yet.
                for (index, parent) in chain.dropFirst().reversed().enumerated() {
                    let child = PublishedName.Directory(segments: Array(name.directory.segments[...index]))
                    try directories.synchronize(since: epoch, confirming: child) { () throws(Errno) in
                        try parent.synchronize()
                    }
                }
            } catch {
                if let made { directories.removeLost(made, removeDirectory) }
                throw error
            }
        }
    }

    private func removeDirectory(_ path: PublishedName.Directory) throws(Errno) {
        guard let name = PublishedName(segments: path.segments), let parent = try? open(name.directory) else {
            throw .noSuchFile
        }
        try parent.removeDirectory(at: name.lastSegment)
    }

    /// The size of a directory with about two thousand entries.
    private static let largeDirectory = 64 << 10

    /// A directory below `files/`.
    private final class Directory: PublishedDirectory {
        private let descriptor: FileDescriptor
        private let stream: DirectoryStream

        init(_ descriptor: FileDescriptor) throws(Errno) {
            self.descriptor = descriptor
            stream = try DirectoryStream(descriptor)
        }

        func nextName<Result>(_ body: (UnsafeRawBufferPointer) -> Result) throws(Errno) -> Result? {
            while true {
                let found = try stream.next { name, kind -> Result? in kind == .other ? nil : body(name) }
                guard let found else { return nil }
                if let result = found { return result }
            }
        }

        var identityIfLarge: String? {
            // In all of these file systems the size grows with the number of entries.
            guard let status = try? descriptor.status(), status.size >= FileBlobArea.largeDirectory,
                descriptor.canBeObserved
            else { return nil }
            return "\(status.device)-\(status.identity)"
        }

        func watch() throws(Errno) -> DirectoryWatch { try DirectoryWatch(descriptor) }

        func entry(_ name: String) throws(Errno) -> PublishedEntry? {
            let status: FileStatus
            do throws(Errno) { status = try descriptor.status(at: name) } catch {
                if error == .noSuchFile { return nil }
                throw error
            }
            guard status.isRegular || status.isDirectory else { return nil }
            return PublishedEntry(
                name: name, isDirectory: status.isDirectory, size: status.isRegular ? status.size : 0,
                modifiedSeconds: status.modified.seconds)
        }
    }

    func openDirectory(_ directory: PublishedName.Directory) throws(StoreError) -> any PublishedDirectory {
        let descriptor = try open(directory)
        return try translating("open a directory") { () throws(Errno) in try Directory(descriptor) }
    }

    /// Opens a directory component by component, without following links.
    func open(_ path: PublishedName.Directory) throws(StoreError) -> FileDescriptor {
        var descriptor = directory.files
        for segment in path.segments {
            descriptor = try translatingWalk { () throws(Errno) in try descriptor.openDirectory(at: segment) }
        }
        return descriptor
    }

    /// Opens a directory component by component, without following links. Before each component is opened, calls
    /// `before` with its parent directory and its name. Returns the directory, then its parents, the root last.
    private func walk(
        _ path: PublishedName.Directory, before: (FileDescriptor, PublishedName) throws(Errno) -> Void
    ) throws(StoreError) -> [FileDescriptor] {
        var chain = [directory.files]
        for (index, segment) in path.segments.enumerated() {
            let parent = chain[0]
            let child = try translatingWalk { () throws(Errno) in
                if let name = PublishedName(segments: Array(path.segments[...index])) { try before(parent, name) }
                return try parent.openDirectory(at: segment)
            }
            chain.insert(child, at: 0)
        }
        return chain
    }

    private func translatingWalk(_ body: () throws(Errno) -> FileDescriptor) throws(StoreError) -> FileDescriptor {
        do throws(Errno) { return try body() } catch {
            switch error {
            case .noSuchFile: throw .notFound
            case .notDirectory, .tooManySymbolicLinks: throw .parentIsFile
            default: throw .failure(error, during: "open a directory")
            }
        }
    }
}

extension FileDescriptor {
    func openDirectory(at segment: String) throws(Errno) -> FileDescriptor {
        try open(at: segment, [.readOnly, .directory, .noFollow])
    }
}
