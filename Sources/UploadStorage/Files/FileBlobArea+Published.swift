import SystemCalls

/// Content in a local file.
struct DescriptorContent: PublishedContent {
    let descriptor: FileDescriptor

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(Errno) -> Int {
        try descriptor.read(into: buffer, at: offset)
    }

    func duplicateForHandover() throws(Errno) -> Int32? { try descriptor.duplicateForHandover() }
}

extension FileBlobArea {
    func openPublished(_ name: PublishedName) throws(StoreError) -> PublishedBlob {
        let parent = try open(name.directory)
        let descriptor: FileDescriptor
        let status: FileStatus
        let attributes: PublishedFile.Attributes
        do throws(Errno) {
            descriptor = try parent.open(at: name.lastSegment, Self.reading)
            status = try descriptor.status()
            attributes = try status.publishedAttributes()
        } catch {
            switch error {
            case .noSuchFile: throw .notFound
            case .tooManySymbolicLinks, .noSuchDevice: throw .targetIsSpecial
            default: throw .failure(error, during: "open a published file")
            }
        }
        if status.isDirectory { throw .targetIsDirectory }
        guard status.isRegular else { throw .targetIsSpecial }
        let file = PublishedFile(attributes: attributes, content: DescriptorContent(descriptor: descriptor))
        return PublishedBlob(identity: status.identity, file: file)
    }

    func isPublished(_ name: PublishedName) throws(StoreError) -> Bool {
        let parent: FileDescriptor
        do throws(StoreError) { parent = try open(name.directory) } catch {
            if [.notFound, .parentIsFile].contains(error) { return false }
            throw error
        }
        do throws(Errno) { return try parent.status(at: name.lastSegment).isRegular } catch {
            if error == .noSuchFile { return false }
            throw .failure(error, during: "look for a published file")
        }
    }

    func makeDirectories(for name: PublishedName, durably: Bool) throws(StoreError) {
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
            if !durably {
                _ = try make(path, in: parent)
                return
            }
            try directories.make(
                path.asDirectory, { () throws(Errno) in try make(path, in: parent) }, remove: removeDirectory)
        }
        guard durably else { return }
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

    func requirePublishable(_ name: PublishedName) throws(StoreError) {
        // The directories of the path are opened, as far as they exist.
        var parent = directory.files
        for segment in name.directory.segments {
            do throws(Errno) {
                parent = try parent.openDirectory(at: segment)
            } catch {
                if error == .noSuchFile { break }
                if error == .notDirectory || error == .tooManySymbolicLinks { throw .parentIsFile }
                throw .failure(error, during: "open a directory below files/")
            }
        }
        let uploads = directory.uploads
        try translating("publish in files/\(name.directory.segments.joined(separator: "/"))") { () throws(Errno) in
            if try parent.status().device != uploads.status().device { throw .crossDevice }
            try parent.requireWritableDirectory()
        }
    }

    var synchronizationEpoch: SynchronizationEpoch { directories.epoch }

    func publish(
        _ name: String, as published: PublishedName, replaces: Bool
    ) throws(StoreError) -> SynchronizationEpoch {
        let epoch = directories.epoch
        let parent = try open(published.directory)
        do throws(Errno) {
            if replaces {
                try exchange(name, with: parent, published.lastSegment)
            } else {
                try renameNoReplace(name, to: parent, as: published.lastSegment)
            }
        } catch {
            switch error {
            case .fileExists: throw .preconditionFailed
            case .isDirectory, .directoryNotEmpty: throw .targetIsDirectory
            case .notDirectory: throw .parentIsFile
            default: throw .failure(error, during: "publish")
            }
        }
        return epoch
    }

    private func exchange(_ name: String, with parent: FileDescriptor, _ newName: String) throws(Errno) {
        let uploads = directory.uploads
        do throws(Errno) {
            guard try parent.status(at: newName).isRegular else { throw .isDirectory }
            try uploads.exchange(name, with: parent, newName)
        } catch {
            guard
                error == .invalidArgument || error == .notImplemented || error == .notSupported || error == .noSuchFile
            else { throw error }
            // The file system does not support RENAME_EXCHANGE, or the file has just been removed by hand.
            try freeingInBackground(newName, from: parent) { () throws(Errno) in
                try uploads.rename(from: name, to: parent, as: newName)
            }
        }
    }

    private func renameNoReplace(_ name: String, to parent: FileDescriptor, as newName: String) throws(Errno) {
        do throws(Errno) {
            try directory.uploads.renameNoReplace(from: name, to: parent, as: newName)
        } catch {
            guard error == .invalidArgument || error == .notImplemented || error == .notSupported else { throw error }
            // The file system does not support RENAME_NOREPLACE. Between the two calls, both names belong to the same
            // file, which recovery recognizes by its identity.
            try directory.uploads.link(from: name, to: parent, as: newName)
            try directory.uploads.unlink(at: name)
        }
    }

    func republish(
        _ published: PublishedName, from name: String, modified: Int64
    ) throws(StoreError) -> SynchronizationEpoch {
        let epoch = directories.epoch
        let parent = try open(published.directory)
        let (uploads, newName) = (directory.uploads, published.lastSegment)
        do throws(Errno) {
            let file = try parent.open(at: newName, Self.reading)
            try file.setModified(FileStatus.Time(nanoseconds: modified))
            let other = try identity(of: name)
            let isSecondName = try other == file.status().identity
            // The publication used `link` and was interrupted before `unlink`.
            if isSecondName { try uploads.unlink(at: name) }
            if other == nil || isSecondName {
                try parent.rename(from: newName, to: uploads, as: name)
                try renameNoReplace(name, to: parent, as: newName)
            } else {
                // The bytes get their first name again before they lose the published name, so that they always have a
                // name on the disk.
                try parent.exchange(newName, with: uploads, name)
                try uploads.exchange(name, with: parent, newName)
            }
        } catch {
            throw error == .fileExists ? .preconditionFailed : .failure(error, during: "repeat a publication")
        }
        return epoch
    }

    private func identity(of name: String) throws(Errno) -> String? {
        do throws(Errno) { return try directory.uploads.status(at: name).identity } catch {
            if error == .noSuchFile { return nil }
            throw error
        }
    }

    func synchronizePublication(
        _ name: PublishedName, of blob: (any Blob)?, since epoch: SynchronizationEpoch
    ) throws(StoreError) {
        let parent = try open(name.directory)
        try translating("synchronize a publication") { [directory, directories] () throws(Errno) in
            // The file description with which the bytes were written reports errors that a new description does not
            // report.
            if let blob {
                try blob.synchronize(including: .attributes)
            } else {
                try parent.open(at: name.lastSegment, Self.reading).synchronize()
                // Between the two renames of `republish` the bytes had their old name. Until that name is durable, a
                // file system may keep the removal of the published name for later.
                try directories.synchronize(directory.uploads, since: epoch)
            }
            try directories.synchronize(parent, since: epoch)
            try directories.synchronize(directory.uploads, since: epoch)
        }
    }

    var canSynchronizeTogether: Bool {
        let now = SystemClock.monotonicNanoseconds()
        let (isUsable, mustTry) = fileSystem.withLock { ($0.isUsable(at: now), $0.beginTrial(at: now)) }
        if mustTry { tryFileSystem() }
        return isUsable
    }

    /// Measures in the background whether the file system is synchronized fast.
    private func tryFileSystem() {
        let begin = SystemClock.monotonicNanoseconds()
        let end = { @Sendable [fileSystem] (isDone: Bool) in
            fileSystem.withLock {
                $0.endTrial(from: begin, to: SystemClock.monotonicNanoseconds(), isDone: isDone)
            }
        }
        do throws(Errno) {
            _ = try WorkerThread(name: "syncfs", yieldsToOthers: true) { [root = directory.root] in
                // No file depends on this call. The kernel reports a failed write once to each file description, so this
                // call uses its own: the error is then also reported to the calls that synchronize files.
                let own = try? root.open(at: ".", [.readOnly, .directory])
                end((try? own?.synchronizeFileSystem()) != nil)
            }
        } catch { end(false) }
    }

    func synchronize(_ blobs: [any Blob]) throws(Errno) {
        if blobs.count == 1 { return try blobs[0].synchronize(including: .attributes) }
        // An earlier call that has failed may have written these bytes, too, and only that call has got the error.
        let epochs = blobs.compactMap { ($0 as? FileBlob)?.epoch }
        guard let oldest = epochs.min(by: { $0.failures < $1.failures }) else { return }
        try synchronizeFileSystem(since: oldest)
    }

    func synchronizeNames(_ names: [PublishedName], since epoch: SynchronizationEpoch) throws(StoreError) {
        let paths = Set(names.map(\.directory))
        let parent = paths.count == 1 ? try open(paths.first ?? .root) : nil
        try translating("synchronize published names") { () throws(Errno) in
            if let parent { return try directories.synchronize(parent, since: epoch) }
            try synchronizeFileSystem(since: epoch)
        }
    }

    /// - Parameter epoch: the epoch from before the first change.
    private func synchronizeFileSystem(since epoch: SynchronizationEpoch) throws(Errno) {
        try directories.synchronizeTogether(Self.fileSystemTurn, since: epoch) { () throws(Errno) in
            var isDone = false
            fileSystem.withLock { $0.begin(at: SystemClock.monotonicNanoseconds()) }
            defer { fileSystem.withLock { $0.end(at: SystemClock.monotonicNanoseconds(), isDone: isDone) } }
            try directory.uploads.synchronizeFileSystem()
            isDone = true
        }
    }

    func withdraw(_ published: PublishedName, to name: String) throws(StoreError) -> SynchronizationEpoch {
        let epoch = directories.epoch
        let parent = try open(published.directory)
        try translating("withdraw a publication") { [directory] () throws(Errno) in
            do throws(Errno) {
                let replaced = try directory.uploads.status(at: name)
                // If both names belong to the same file, no other file was replaced.
                guard try parent.status(at: published.lastSegment).identity != replaced.identity else {
                    throw .noSuchFile
                }
                try directory.uploads.exchange(name, with: parent, published.lastSegment)
            } catch {
                guard error == .noSuchFile else { throw error }
                try freeingInBackground(published.lastSegment, from: parent) { () throws(Errno) in
                    try parent.unlink(at: published.lastSegment)
                }
            }
        }
        return epoch
    }

    func synchronizeWithdrawal(_ published: PublishedName, since epoch: SynchronizationEpoch) throws(StoreError) {
        var parent: FileDescriptor?
        do throws(StoreError) { parent = try open(published.directory) } catch {
            guard [.notFound, .parentIsFile].contains(error) else { throw error }
        }
        try translating("synchronize a withdrawal") { [directory, directories] () throws(Errno) in
            if let parent { try directories.synchronize(parent, since: epoch) }
            try directories.synchronize(directory.uploads, since: epoch)
        }
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

    func removePublished(_ name: PublishedName, tagged tag: String) throws(StoreError) {
        let epoch = directories.epoch
        let parent = try open(name.directory)
        do throws(Errno) {
            try freeingInBackground(name.lastSegment, from: parent) { () throws(Errno) in
                try parent.unlink(at: name.lastSegment)
            }
            // A failure is counted, because the changes of other threads in this directory may be lost, too.
            try directories.synchronize(parent, since: epoch)
        } catch {
            switch error {
            case .noSuchFile: throw .notFound
            case .isDirectory: throw .targetIsDirectory
            default: throw .failure(error, during: "remove a published file")
            }
        }
    }

    /// Opens a directory component by component, without following links.
    private func open(_ path: PublishedName.Directory) throws(StoreError) -> FileDescriptor {
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
    fileprivate func openDirectory(at segment: String) throws(Errno) -> FileDescriptor {
        try open(at: segment, [.readOnly, .directory, .noFollow])
    }
}
