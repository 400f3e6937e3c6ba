import SystemCalls

extension MemoryBlobArea {
    private struct Content: PublishedContent {
        let inode: Int
        let area: MemoryBlobArea

        func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(Errno) -> Int {
            try area.plan.step(.read)
            return area.state.withLock { $0.read(inode, into: buffer, at: offset) }
        }

        func duplicateForSending() throws(Errno) -> Int32? { nil }
    }

    package func openPublished(_ name: PublishedName) throws(StoreError) -> PublishedBlob {
        try step(.open)
        return try state.withLock { (state) throws(StoreError) in
            try Self.requireDirectory(name.directory, in: &state)
            switch state.namespace.nodes[Self.path(name)] {
            case nil: throw .notFound
            case .directory: throw .targetIsDirectory
            case .file(let inode):
                let attributes = try translating("read attributes") { () throws(Errno) in try state.attributes(inode) }
                let content = Content(inode: inode, area: self)
                return PublishedBlob(
                    identity: "\(inode)", file: PublishedFile(attributes: attributes, content: content))
            }
        }
    }

    package func isPublished(_ name: PublishedName) throws(StoreError) -> Bool {
        try step(.read)
        return state.withLock { state in
            if case .file = state.namespace.nodes[Self.path(name)] { true } else { false }
        }
    }

    package func makeDirectories(for name: PublishedName, durably isDurable: Bool) throws(StoreError) {
        let epoch = directories.epoch
        var made: PublishedName.Directory?
        func make(_ directory: PublishedName.Directory) throws(Errno) -> Bool {
            try plan.step(.create)
            return try state.withLock { (state) throws(Errno) in
                switch state.namespace.nodes[Self.path(directory)] {
                case nil:
                    state.namespace.add(Self.path(directory), .directory)
                    made = made ?? directory
                    return true
                case .directory: return false
                case .file: throw .notDirectory
                }
            }
        }
        let all = name.directory.segments.indices.compactMap { index in
            PublishedName.Directory(segments: Array(name.directory.segments[...index]))
        }
        do throws(Errno) {
            for directory in all {
                if isDurable {
                    try directories.make(
                        directory, { () throws(Errno) in try make(directory) }, remove: removeDirectory)
                } else {
                    _ = try make(directory)
                }
            }
        } catch {
            throw error == .notDirectory ? .parentIsFile : .failure(error, during: "make directories")
        }
        guard isDurable else { return }
        try translating("synchronize directories") { () throws(Errno) in
            do throws(Errno) {
                for directory in all {
                    let parent = MemoryNamespace.parent(of: Self.path(directory))
                    try synchronizeNames(parent, since: epoch, confirming: directory)
                }
            } catch {
                if let made { directories.removeLost(made, removeDirectory) }
                throw error
            }
        }
    }

    private func removeDirectory(_ directory: PublishedName.Directory) throws(Errno) {
        try plan.step(.removeDirectory)
        try state.withLock { (state) throws(Errno) in
            let path = Self.path(directory)
            guard state.namespace.nodes[path] != nil else { throw .noSuchFile }
            if state.namespace.nodes.keys.contains(where: { $0.hasPrefix(path + "/") }) { throw .directoryNotEmpty }
            state.namespace.remove(path)
        }
    }

    package func requirePublishable(_ name: PublishedName) throws(StoreError) {}

    package var synchronizationEpoch: SynchronizationEpoch { directories.epoch }

    package func publish(
        _ name: String, as published: PublishedName, replaces: Bool
    ) throws(StoreError) -> SynchronizationEpoch {
        let epoch = directories.epoch
        try step(.rename)
        try state.withLock { (state) throws(StoreError) in
            try Self.requireDirectory(published.directory, in: &state)
            let source = Self.path(name)
            guard case .file = state.namespace.nodes[source] else {
                throw .failure(.noSuchFile, during: "publish")
            }
            switch state.namespace.nodes[Self.path(published)] {
            case .directory: throw .targetIsDirectory
            case .file where !replaces: throw .preconditionFailed
            case .file: state.namespace.exchange(source, with: Self.path(published))
            case nil: state.namespace.move(source, to: Self.path(published))
            }
        }
        return epoch
    }

    package func withdraw(
        _ published: PublishedName, to name: String
    ) throws(StoreError) -> SynchronizationEpoch {
        let epoch = directories.epoch
        try step(.rename)
        state.withLock { state in
            let (source, target) = (Self.path(name), Self.path(published))
            if state.namespace.nodes[source] != nil, state.namespace.nodes[source] != state.namespace.nodes[target] {
                state.namespace.exchange(source, with: target)
            } else {
                state.namespace.remove(target)
            }
        }
        return epoch
    }

    package func republish(
        _ published: PublishedName, from name: String, modified: Int64
    ) throws(StoreError) -> SynchronizationEpoch {
        let epoch = directories.epoch
        let (source, target) = (Self.path(name), Self.path(published))
        try step(.setTime)
        let isExchanged = state.withLock { state in
            if case .file(let inode) = state.namespace.nodes[target] { state.inodes[inode]?.setModified(modified) }
            return state.namespace.nodes[source] != nil
        }
        for (from, to) in [(target, source), (source, target)] {
            try step(.rename)
            state.withLock { state in
                if isExchanged {
                    state.namespace.exchange(source, with: target)
                } else {
                    state.namespace.move(from, to: to)
                }
            }
        }
        return epoch
    }

    package func synchronizeWithdrawal(
        _ name: PublishedName, since epoch: SynchronizationEpoch
    ) throws(StoreError) {
        let parent = Self.path(name.directory)
        if state.withLock({ $0.namespace.nodes[parent] != nil }) { try synchronizeNames(in: parent, since: epoch) }
        try synchronizeNames(in: MemoryNamespace.uploads, since: epoch)
    }

    package var canSynchronizeTogether: Bool { state.withLock { $0.canSynchronizeTogether } }

    package func synchronize(_ blobs: [any Blob]) throws(Errno) {
        if blobs.count == 1 { return try blobs[0].synchronize(including: .attributes) }
        let epochs = blobs.compactMap { ($0 as? MemoryBlob)?.epoch }
        guard let oldest = epochs.min(by: { $0.failures < $1.failures }) else { return }
        try directories.synchronize(since: oldest) { () throws(Errno) in
            do throws(Errno) { try plan.step(.synchronize) } catch {
                if !plan.isCrashed { changeInodes { $0.failToSynchronizeArea() } }
                throw error
            }
            changeInodes { $0.synchronize() }
        }
    }

    private func changeInodes(_ body: (inout MemoryInode) -> Void) {
        state.withLock { state in
            state.inodes = state.inodes.mapValues { inode in
                var changed = inode
                body(&changed)
                return changed
            }
        }
    }

    package func synchronizeNames(
        _ names: [PublishedName], since epoch: SynchronizationEpoch
    ) throws(StoreError) {
        for directory in Set(names.map(\.directory)) { try synchronizeNames(in: Self.path(directory), since: epoch) }
    }

    package func synchronizePublication(
        _ name: PublishedName, of blob: (any Blob)?, since epoch: SynchronizationEpoch
    ) throws(StoreError) {
        func change(_ body: (inout MemoryInode) -> Void) {
            state.withLock { state in
                guard case .file(let number) = state.namespace.nodes[Self.path(name)], var inode = state.inodes[number]
                else { return }
                body(&inode)
                state.inodes[number] = inode
            }
        }
        do throws(StoreError) { try step(.synchronize) } catch {
            if !plan.isCrashed { change { $0.failToSynchronize() } }
            throw error
        }
        change { $0.synchronize() }
        try synchronizeNames(in: Self.path(name.directory), since: epoch)
        try synchronizeNames(in: MemoryNamespace.uploads, since: epoch)
    }

    /// A directory with the names that it had when it was opened.
    private final class Directory: PublishedDirectory {
        private var entries: ArraySlice<PublishedEntry>
        private let byName: [String: PublishedEntry]
        private let plan: FaultPlan

        init(_ entries: [PublishedEntry], plan: FaultPlan) {
            self.entries = entries[...]
            byName = Dictionary(uniqueKeysWithValues: entries.map { ($0.name, $0) })
            self.plan = plan
        }

        func nextName<Result>(_ body: (UnsafeRawBufferPointer) -> Result) throws(Errno) -> Result? {
            try plan.step(.read)
            return entries.popFirst().map { entry in Array(entry.name.utf8).withUnsafeBytes(body) }
        }

        var identityIfLarge: String? { nil }
        func watch() throws(Errno) -> DirectoryWatch { throw .notSupported }
        func entry(_ name: String) throws(Errno) -> PublishedEntry? { byName[name] }
    }

    package func openDirectory(_ directory: PublishedName.Directory) throws(StoreError) -> any PublishedDirectory {
        try step(.read)
        let entries = try state.withLock { (state) throws(StoreError) in
            try Self.requireDirectory(directory, in: &state)
            let parent = Self.path(directory)
            var entries: [PublishedEntry] = []
            for (path, node) in state.namespace.nodes where MemoryNamespace.parent(of: path) == parent {
                let name = String(path.split(separator: "/").last ?? "")
                switch node {
                case .directory:
                    entries.append(PublishedEntry(name: name, isDirectory: true, size: 0, modifiedSeconds: 0))
                case .file(let inode):
                    let content = state.inodes[inode] ?? MemoryInode()
                    entries.append(
                        PublishedEntry(
                            name: name, isDirectory: false, size: Int64(content.content.count),
                            modifiedSeconds: content.modified / 1_000_000_000))
                }
            }
            return entries
        }
        return Directory(entries, plan: plan)
    }

    package func removePublished(_ name: PublishedName, tagged tag: String) throws(StoreError) {
        let epoch = directories.epoch
        try step(.remove)
        try state.withLock { (state) throws(StoreError) in
            try Self.requireDirectory(name.directory, in: &state)
            switch state.namespace.nodes[Self.path(name)] {
            case nil: throw .notFound
            case .directory: throw .targetIsDirectory
            case .file: state.namespace.remove(Self.path(name))
            }
        }
        try synchronizeNames(in: Self.path(name.directory), since: epoch)
    }

    private func synchronizeNames(in directory: String, since epoch: SynchronizationEpoch) throws(StoreError) {
        try translating("synchronize names") { () throws(Errno) in try synchronizeNames(directory, since: epoch) }
    }

    private func step(_ operation: FaultPlan.Operation) throws(StoreError) {
        try translating("\(operation)") { () throws(Errno) in try plan.step(operation) }
    }

    private static func requireDirectory(_ directory: PublishedName.Directory, in state: inout State) throws(StoreError)
    {
        var path = MemoryNamespace.files
        for segment in directory.segments {
            path += "/" + segment
            switch state.namespace.nodes[path] {
            case nil: throw .notFound
            case .file: throw .parentIsFile
            case .directory: continue
            }
        }
    }

    private static func path(_ name: PublishedName) -> String { MemoryNamespace.files + "/" + name.path }

    private static func path(_ directory: PublishedName.Directory) -> String {
        ([MemoryNamespace.files] + directory.segments).joined(separator: "/")
    }
}
