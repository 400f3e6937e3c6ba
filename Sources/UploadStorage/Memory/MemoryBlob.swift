import Synchronization
import SystemCalls

/// The bytes of one upload in memory.
final class MemoryBlob: Blob {
    private let inode: Int
    private let area: MemoryBlobArea
    let epoch: SynchronizationEpoch
    private let nameIsDurable = Atomic(false)

    /// - Parameter epoch: the epoch from before the file got its name.
    init(_ inode: Int, in area: MemoryBlobArea, since epoch: SynchronizationEpoch) {
        self.inode = inode
        self.area = area
        self.epoch = epoch
    }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(Errno) -> Int {
        try area.plan.step(.write)
        return try area.state.withLock { (state) throws(Errno) in
            let free = max(0, state.capacity - state.used)
            let growth = offset + Int64(bytes.count) - Int64(state.inodes[inode]?.content.count ?? 0)
            // As on a disk, the bytes that still fit are written.
            let count = growth <= free ? bytes.count : bytes.count - Int(growth - free)
            guard count > 0 else { throw .noSpace }
            state.inodes[inode]?.write(UnsafeRawBufferPointer(rebasing: bytes[..<count]), at: Int(offset))
            return count
        }
    }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(Errno) -> Int {
        try area.plan.step(.read)
        return area.state.withLock { $0.read(inode, into: buffer, at: offset) }
    }

    func openForReading() throws(Errno) -> FileDescriptor? { nil }

    func startWriteBack(at offset: Int64, count: Int64) {}

    func awaitWriteBack(at offset: Int64, count: Int64) {}

    func synchronize(including detail: BlobDetail?) throws(Errno) {
        do throws(Errno) {
            try area.plan.step(.synchronize)
            // As on Linux, each open file reports an error once, including one of another synchronization.
            let error = area.state.withLock { $0.inodes[inode]?.takeUnreportedError() ?? false }
            if error { throw .inputOutput }
        } catch {
            if !area.plan.isCrashed { area.state.withLock { $0.inodes[inode]?.failToSynchronize() } }
            throw error
        }
        area.state.withLock { $0.inodes[inode]?.synchronize() }
        if detail == .name && !nameIsDurable.load(ordering: .acquiring) {
            try area.synchronizeNames(MemoryNamespace.uploads, since: epoch)
            nameIsDurable.store(true, ordering: .releasing)
        }
    }

    func size() throws(Errno) -> Int64 {
        try area.plan.step(.read)
        return area.state.withLock { Int64($0.inodes[inode]?.content.count ?? 0) }
    }

    func truncate(to size: Int64) throws(Errno) {
        try area.plan.step(.truncate)
        area.state.withLock { $0.inodes[inode]?.truncate(to: Int(size)) }
    }

    func identity() throws(Errno) -> String { "\(inode)" }

    func setModified(_ nanoseconds: Int64) throws(Errno) {
        try area.plan.step(.setTime)
        area.state.withLock { $0.inodes[inode]?.setModified(nanoseconds) }
    }

    func attributes() throws(Errno) -> PublishedFile.Attributes {
        try area.plan.step(.read)
        return try area.state.withLock { (state) throws(Errno) in try state.attributes(inode) }
    }
}
