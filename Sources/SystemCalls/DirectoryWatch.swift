import CLinux
import Glibc

/// Observes which names of a directory are added and removed, by any program (inotify(7)).
///
/// A change can be read before the system call that makes it returns.
package final class DirectoryWatch: Sendable {
    private static let bufferSize = 64 << 10

    private let descriptor: FileDescriptor

    /// Starts to observe a directory. Throws `EMFILE` or `ENOSPC` if the user observes as much as the system allows.
    package init(_ directory: FileDescriptor) throws(Errno) {
        descriptor = FileDescriptor(owning: try retryingOnInterrupt { inotify_init1(Int32(IN_NONBLOCK | IN_CLOEXEC)) })
        let events = IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_ONLYDIR
        _ = try retryingOnInterrupt {
            inotify_add_watch(descriptor.rawValue, directory.processPath, UInt32(events))
        }
    }

    /// Calls `body` with every name that may have been added or removed since the last call, perhaps more than once. The
    /// bytes of the name are valid only during the call.
    /// - Returns: false if names were missed, because there were too many changes, or if the directory was removed.
    package func forEachChange(_ body: (UnsafeRawBufferPointer) -> Void) throws(Errno) -> Bool {
        let buffer = UnsafeMutableRawBufferPointer.allocate(
            byteCount: Self.bufferSize, alignment: MemoryLayout<inotify_event>.alignment)
        defer { buffer.deallocate() }
        let losses = UInt32(IN_Q_OVERFLOW | IN_IGNORED | IN_DELETE_SELF | IN_UNMOUNT)
        while true {
            let count: Int
            do throws(Errno) {
                count = try retryingOnInterrupt { read(descriptor.rawValue, buffer.baseAddress, buffer.count) }
            } catch {
                if error == .wouldBlock { return true }
                throw error
            }
            var remaining = UnsafeRawBufferPointer(rebasing: buffer[..<count])
            while remaining.count >= MemoryLayout<inotify_event>.size {
                let event = remaining.load(as: inotify_event.self)
                if event.mask & losses != 0 { return false }
                let end = MemoryLayout<inotify_event>.size + Int(event.len)
                let padded = remaining[MemoryLayout<inotify_event>.size..<end]
                body(UnsafeRawBufferPointer(rebasing: padded.prefix { $0 != 0 }))
                remaining = UnsafeRawBufferPointer(rebasing: remaining[end...])
            }
        }
    }
}

extension FileDescriptor {
    /// Whether a ``DirectoryWatch`` is known to observe all changes in this file system: only this computer changes file
    /// systems of this kind.
    package var canBeObserved: Bool {
        var status = statfs()
        guard fstatfs(rawValue, &status) == 0 else { return false }
        let known = [ONWARD_EXT4_MAGIC, ONWARD_XFS_MAGIC, ONWARD_BTRFS_MAGIC, ONWARD_TMPFS_MAGIC]
        return known.contains(UInt32(truncatingIfNeeded: status.f_type))
    }
}
