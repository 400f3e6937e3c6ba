import SystemCalls

extension PartialFile {
    enum Opened {
        /// A file that can be continued; its position is the end of the bytes that were verified.
        case usable(PartialFile)
        /// There is no such file, or its bytes cannot be trusted.
        case unusable
        /// Another transfer is writing the file.
        case busy
    }

    /// Opens the partial file of `checkpoint`, and removes it if its bytes have been changed. Another file that now has
    /// its name is not changed.
    static func open(_ checkpoint: DownloadCheckpoint, in location: PartialFileLocation) throws(Errno) -> Opened {
        guard let file = try openOwn(checkpoint, as: checkpoint.partialName, .readWrite, in: location) else {
            return .unusable
        }
        guard try file.descriptor().lockForTransfer() else { return .busy }
        // The name may have been removed before the lock was acquired.
        guard (try? location.directory.status(at: checkpoint.partialName).inode) == file.inode else { return .unusable }
        guard let position = try file.verifiedSize(checkpoint) else {
            file.remove()
            return .unusable
        }
        try file.descriptor().truncate(to: position)
        file.state.withLock { state in
            state.position = position
            state.isFresh = false
        }
        if let error = file.synchronize() { throw error }
        return .usable(file)
    }

    /// Checks whether the partial file of `checkpoint` was complete and has its final name.
    /// - Returns: the path of the file; `nil` if it does not have its final name.
    static func isPublished(
        _ checkpoint: DownloadCheckpoint, in location: PartialFileLocation
    ) throws(Errno) -> FilePath? {
        guard let name = location.destinationName, checkpoint.total == checkpoint.synchronized,
            let file = try openOwn(checkpoint, as: name, .readOnly, in: location),
            try file.descriptor().status().size == checkpoint.total,
            try file.tailDigest(upTo: checkpoint.synchronized) == checkpoint.tailDigest
        else { return nil }
        return location.path.appending(name)
    }

    /// Removes the partial file of `checkpoint`. Another file that now has its name is not removed.
    /// - Returns: false if another transfer is writing the file.
    static func discard(_ checkpoint: DownloadCheckpoint, in location: PartialFileLocation) throws(Errno) -> Bool {
        guard let file = try openOwn(checkpoint, as: checkpoint.partialName, .readWrite, in: location) else {
            return true
        }
        guard try file.descriptor().lockForTransfer() else { return false }
        file.remove()
        return true
    }

    /// - Returns: `nil` if there is no such file, or if it is not the one of the checkpoint.
    private static func openOwn(
        _ checkpoint: DownloadCheckpoint, as name: FilePath, _ access: FileDescriptor.OpenFlags,
        in location: PartialFileLocation
    ) throws(Errno) -> PartialFile? {
        let descriptor: FileDescriptor
        do throws(Errno) {
            // Non-blocking, because opening a FIFO would wait for its other end.
            descriptor = try location.directory.open(at: name, [access, .noFollow, .nonBlocking])
        } catch {
            let isOther: [Errno] = [
                .noSuchFile, .tooManySymbolicLinks, .noSuchDevice, .notDirectory, .isDirectory, .accessDenied,
                .notPermitted,
            ]
            if isOther.contains(error) { return nil }
            throw error
        }
        let status = try descriptor.status()
        guard status.isRegular, status.owner == ProcessControl.effectiveUser, status.linkCount == 1,
            status.inode == checkpoint.inode
        else { return nil }
        return PartialFile(location, name, descriptor, inode: status.inode, isNamed: true)
    }

    /// The number of bytes at the beginning of the file that are verified; `nil` if the file has been changed.
    private func verifiedSize(_ checkpoint: DownloadCheckpoint) throws(Errno) -> Int64? {
        let size = try descriptor().status().size
        if let total = checkpoint.total, size > total { return nil }
        guard size >= checkpoint.synchronized else { return nil }
        if try tailDigest(upTo: checkpoint.synchronized) != checkpoint.tailDigest { return nil }
        // Bytes that were not on stable storage may be wrong after a crash of the system, after a failure of the disk,
        // or because the file was edited. They count only if their digest matches.
        let isSameBoot = !checkpoint.bootID.isEmpty && checkpoint.bootID == BootIdentity.current
        guard isSameBoot, checkpoint.received > checkpoint.synchronized, size >= checkpoint.received,
            let known = checkpoint.spanDigest, try digest(of: checkpoint.synchronized..<checkpoint.received) == known
        else { return checkpoint.synchronized }
        return checkpoint.received
    }
}

/// Identifies one run of the system.
enum BootIdentity {
    /// The boot identifier; empty if it is unknown.
    static let current: String = {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64, alignment: 1)
        defer { buffer.deallocate() }
        guard let file = try? FileDescriptor.open("/proc/sys/kernel/random/boot_id", .readOnly),
            let count = try? file.read(into: buffer, at: 0)
        else { return "" }
        return String(decoding: buffer[..<count].prefix { $0 > 0x20 }, as: UTF8.self)
    }()
}
