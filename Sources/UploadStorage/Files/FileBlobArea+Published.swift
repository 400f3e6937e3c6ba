import SystemCalls

/// Content in a local file.
struct DescriptorContent: PublishedContent {
    let descriptor: FileDescriptor

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(Errno) -> Int {
        try descriptor.read(into: buffer, at: offset)
    }

    func duplicateForSending() throws(Errno) -> Int32? { try descriptor.duplicateForSending() }
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
            _ = try WorkerThread(name: "syncfs", shouldYield: true) { [root = directory.root] in
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
}
