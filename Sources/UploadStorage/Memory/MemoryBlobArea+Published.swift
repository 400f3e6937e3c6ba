import SystemCalls

extension MemoryBlobArea {
    private struct Content: PublishedContent {
        let inode: Int
        let area: MemoryBlobArea

        func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(Errno) -> Int {
            try area.plan.step(.read)
            return area.state.withLock { $0.read(inode, into: buffer, at: offset) }
        }

        func duplicateDescriptor() throws(Errno) -> FileDescriptor? { nil }
    }

    package func openPublished(_ name: PublishedName) throws(StoreError) -> PublishedBlob {
        try step(.open)
        return try state.withLock { (state) throws(StoreError) in
            try Self.walk(name.directory, in: &state)
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

    package func makeDirectories(for name: PublishedName, durably: Bool) throws(StoreError) {
        var parent = MemoryNamespace.files
        for segment in name.directory.segments {
            let path = parent + "/" + segment
            try step(.create)
            let isNew = try state.withLock { (state) throws(StoreError) in
                switch state.namespace.nodes[path] {
                case nil:
                    state.namespace.add(path, .directory)
                    return true
                case .directory: return false
                case .file: throw .parentIsFile
                }
            }
            if durably {
                do throws(StoreError) { try synchronizeNames(in: parent) } catch {
                    // The next one makes it anew, unless it is in use already.
                    state.withLock { state in
                        let isInUse = state.namespace.nodes.keys.contains { $0.hasPrefix(path + "/") }
                        if isNew && !isInUse { state.namespace.remove(path) }
                    }
                    throw error
                }
            }
            parent = path
        }
    }

    package func requirePublishable(_ name: PublishedName) throws(StoreError) {}

    package var synchronizationEpoch: SynchronizationEpoch { SynchronizationEpoch() }

    package func publish(
        _ name: String, as published: PublishedName, replacing: Bool
    ) throws(StoreError) -> SynchronizationEpoch {
        try step(.rename)
        try state.withLock { (state) throws(StoreError) in
            try Self.walk(published.directory, in: &state)
            let source = Self.path(name)
            guard case .file = state.namespace.nodes[source] else {
                throw .failure(.noSuchFile, during: "publish")
            }
            switch state.namespace.nodes[Self.path(published)] {
            case .directory: throw .targetIsDirectory
            case .file where !replacing: throw .preconditionFailed
            case .file: state.namespace.exchange(source, with: Self.path(published))
            case nil: state.namespace.move(source, to: Self.path(published))
            }
        }
        return SynchronizationEpoch()
    }

    package func withdraw(
        _ published: PublishedName, to name: String
    ) throws(StoreError) -> SynchronizationEpoch {
        try step(.rename)
        state.withLock { state in
            let (source, target) = (Self.path(name), Self.path(published))
            if state.namespace.nodes[source] != nil, state.namespace.nodes[source] != state.namespace.nodes[target] {
                state.namespace.exchange(source, with: target)
            } else {
                state.namespace.remove(target)
            }
        }
        return SynchronizationEpoch()
    }

    package func synchronizeWithdrawal(
        _ name: PublishedName, since epoch: SynchronizationEpoch
    ) throws(StoreError) {
        let parent = ([MemoryNamespace.files] + name.directory.segments).joined(separator: "/")
        if state.withLock({ $0.namespace.nodes[parent] != nil }) { try synchronizeNames(in: parent) }
        try synchronizeNames(in: MemoryNamespace.uploads)
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
        try synchronizeNames(in: ([MemoryNamespace.files] + name.directory.segments).joined(separator: "/"))
        try synchronizeNames(in: MemoryNamespace.uploads)
    }

    /// A directory as it was when it was opened.
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

        func entry(_ name: String) throws(Errno) -> PublishedEntry? { byName[name] }
    }

    package func openDirectory(_ directory: PublishedName.Directory) throws(StoreError) -> any PublishedDirectory {
        try step(.read)
        let entries = try state.withLock { (state) throws(StoreError) in
            try Self.walk(directory, in: &state)
            let parent = ([MemoryNamespace.files] + directory.segments).joined(separator: "/")
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

    package func removePublished(_ name: PublishedName) throws(StoreError) {
        try step(.remove)
        try state.withLock { (state) throws(StoreError) in
            try Self.walk(name.directory, in: &state)
            switch state.namespace.nodes[Self.path(name)] {
            case nil: throw .notFound
            case .directory: throw .targetIsDirectory
            case .file: state.namespace.remove(Self.path(name))
            }
        }
        try synchronizeNames(in: ([MemoryNamespace.files] + name.directory.segments).joined(separator: "/"))
    }

    private func synchronizeNames(in directory: String) throws(StoreError) {
        try translating("synchronize names") { () throws(Errno) in try synchronizeNames(directory) }
    }

    private func step(_ operation: FaultPlan.Operation) throws(StoreError) {
        try translating("\(operation)") { () throws(Errno) in try plan.step(operation) }
    }

    private static func walk(_ directory: PublishedName.Directory, in state: inout State) throws(StoreError) {
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
}
