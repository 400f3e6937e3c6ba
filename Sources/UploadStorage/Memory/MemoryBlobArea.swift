import HTTPSemantics
import SystemCalls

/// A blob area in memory that can compute its state after a crash.
package final class MemoryBlobArea: PublishingBlobArea {
    struct State {
        var namespace = MemoryNamespace()
        var inodes: [Int: MemoryInode] = [:]
        var nextInode = 1
        var capacity: Int64
        var canSynchronizeTogether = true
        /// The bytes and the description of each retained blob.
        var retained: [String: (bytes: [UInt8], description: [UInt8])] = [:]
    }

    let state: Monitor<State>
    let plan: FaultPlan
    let directories = DirectorySynchronization()

    /// - Parameter capacity: the maximum number of bytes in the area.
    package init(plan: FaultPlan = FaultPlan(), capacity: Int64 = 1 << 40) {
        self.plan = plan
        state = Monitor(State(capacity: capacity))
    }

    private init(_ state: sending State, plan: FaultPlan) {
        self.plan = plan
        self.state = Monitor(state)
    }

    /// Returns the area that the next process opens after a power loss: everything that was synchronized, and any part
    /// of the other changes.
    package func durableImage(
        using generator: inout some RandomNumberGenerator, plan: FaultPlan = FaultPlan()
    ) -> MemoryBlobArea {
        let (namespace, inodes, nextInode, capacity) = state.withLock { state in
            (state.namespace, state.inodes, state.nextInode, state.capacity)
        }
        var survivor = State(
            namespace: namespace.afterCrash(using: &generator), nextInode: nextInode, capacity: capacity)
        for (number, inode) in inodes.sorted(by: { $0.key < $1.key }) {
            survivor.inodes[number] = inode.afterCrash(using: &generator)
        }
        return MemoryBlobArea(survivor, plan: plan)
    }

    /// Returns the area that the next process opens if this process was killed: all changes, except those that a failed
    /// synchronization lost.
    package func processImage(plan: FaultPlan = FaultPlan()) -> MemoryBlobArea {
        let (namespace, inodes, nextInode, capacity) = state.withLock { state in
            (state.namespace, state.inodes, state.nextInode, state.capacity)
        }
        return MemoryBlobArea(
            State(namespace: namespace, inodes: inodes, nextInode: nextInode, capacity: capacity), plan: plan)
    }

    /// Makes the names in a directory durable.
    func synchronizeNames(
        _ directory: String, since epoch: SynchronizationEpoch, confirming child: PublishedName.Directory? = nil
    ) throws(Errno) {
        try directories.synchronize(since: epoch, confirming: child) { () throws(Errno) in
            do throws(Errno) { try plan.step(.synchronizeNames) } catch {
                if !plan.isCrashed { state.withLock { $0.namespace.failToSynchronize(directory) } }
                throw error
            }
            state.withLock { $0.namespace.synchronize(directory) }
        }
    }

    package func retain(_ name: String, as key: String, description: [UInt8]) throws(Errno) {
        let size = try size(of: name)
        guard let size else { throw .noSuchFile }
        let blob = try open(name)
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Int(size), alignment: 1)
        defer { buffer.deallocate() }
        let bytes = Array(buffer.prefix(try blob.read(into: buffer, at: 0)))
        state.withLock { $0.retained[key] = (bytes, description) }
    }

    package func retainedCount() throws(Errno) -> Int { state.withLock { $0.retained.count } }

    package func setCapacity(_ capacity: Int64) { state.withLock { $0.capacity = capacity } }

    package func setCanSynchronizeTogether(_ can: Bool) { state.withLock { $0.canSynchronizeTogether = can } }

    /// The content of every published file, as it is now.
    package var publishedContents: [String: [UInt8]] {
        state.withLock { state in
            var result: [String: [UInt8]] = [:]
            for case (let path, .file(let inode)) in state.namespace.nodes
            where path.hasPrefix(MemoryNamespace.files + "/") {
                result[String(path.dropFirst(MemoryNamespace.files.utf8.count + 1))] = state.inodes[inode]?.content
            }
            return result
        }
    }

    package func create(_ name: String) throws(Errno) -> any Blob {
        try plan.step(.create)
        let epoch = directories.epoch
        let inode = try state.withLock { (state) throws(Errno) in
            let path = Self.path(name)
            if state.namespace.nodes[path] != nil { throw .fileExists }
            let inode = state.nextInode
            state.nextInode += 1
            state.inodes[inode] = MemoryInode()
            state.namespace.add(path, .file(inode: inode))
            return inode
        }
        return MemoryBlob(inode, in: self, since: epoch)
    }

    package func open(_ name: String) throws(Errno) -> any Blob {
        try plan.step(.open)
        let node = state.withLock { $0.namespace.nodes[Self.path(name)] }
        guard case .file(let inode) = node else { throw .noSuchFile }
        return MemoryBlob(inode, in: self, since: directories.epoch)
    }

    package func remove(_ name: String) throws(Errno) {
        try plan.step(.remove)
        state.withLock { state in
            if state.namespace.nodes[Self.path(name)] != nil { state.namespace.remove(Self.path(name)) }
        }
    }

    package func names() throws(Errno) -> BlobNames {
        try plan.step(.read)
        let paths = state.withLock { Array($0.namespace.nodes.keys) }
        let prefix = MemoryNamespace.uploads + "/"
        let names = Monitor(paths.filter { $0.hasPrefix(prefix) }.map { String($0.dropFirst(prefix.utf8.count)) })
        return { () throws(Errno) -> String? in names.withLock { $0.popLast() } }
    }

    package func size(of name: String) throws(Errno) -> Int64? {
        try plan.step(.read)
        return state.withLock { state in
            guard case .file(let inode) = state.namespace.nodes[Self.path(name)] else { return nil }
            return Int64(state.inodes[inode]?.content.count ?? 0)
        }
    }

    package func space() throws(Errno) -> FileSystemSpace {
        try plan.step(.read)
        return state.withLock { FileSystemSpace(free: max(0, $0.capacity - $0.used), total: $0.capacity) }
    }

    package func probe() throws(Errno) {
        try plan.step(.create)
        try plan.step(.synchronize)
    }

    package func close() {}

    static func path(_ name: String) -> String { MemoryNamespace.uploads + "/" + name }
}

extension MemoryBlobArea.State {
    var used: Int64 {
        let named = Set(
            namespace.nodes.values.compactMap { node in
                if case .file(let inode) = node { inode } else { nil }
            })
        return named.reduce(0) { $0 + Int64(inodes[$1]?.content.count ?? 0) }
    }

    func attributes(_ number: Int) throws(Errno) -> PublishedFile.Attributes {
        guard let inode = inodes[number] else { throw .noSuchFile }
        let changed = "\(inode.changed)-\(namespace.renames[.file(inode: number)] ?? 0)"
        guard let tag = EntityTag(opaque: "\(number)-\(inode.content.count)-\(inode.modified)-\(changed)") else {
            throw .noSuchFile
        }
        return PublishedFile.Attributes(
            size: Int64(inode.content.count), modifiedSeconds: inode.modified / 1_000_000_000,
            modifiedNanoseconds: inode.modified % 1_000_000_000, entityTag: tag)
    }

    func read(_ number: Int, into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) -> Int {
        guard let content = inodes[number]?.content, offset < Int64(content.count) else { return 0 }
        let bytes = content[Int(offset)...].prefix(buffer.count)
        buffer.copyBytes(from: bytes)
        return bytes.count
    }
}
