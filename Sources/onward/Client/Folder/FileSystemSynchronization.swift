import ResumableTransfer
import SystemCalls

/// Makes received files durable, many files with one synchronization of the file system. Only files that are received
/// in one response use it.
///
/// A part of this work is done while other files are received, so that the synchronization at the end, for which the
/// command waits, has little left to write.
final class FileSystemSynchronization: Sendable {
    private struct State {
        /// The number of bytes that were written since the last synchronization started.
        var unsynchronized: Int64 = 0
        var isRunning = false
        /// The first error. The kernel reports an error to one synchronization only.
        var failure: Errno?
    }

    /// The number of bytes after which a synchronization starts.
    private static let interval: Int64 = 16 << 20

    /// A directory in the file system.
    private let directory: FileDescriptor
    private let state = Monitor(State())

    init(_ directory: FileDescriptor) { self.directory = directory }

    /// Notes that a file with this number of bytes was written.
    func note(written count: Int64) {
        let isDue = state.withLock { state in
            state.unsynchronized += count
            guard state.unsynchronized >= Self.interval, !state.isRunning else { return false }
            state.unsynchronized = 0
            state.isRunning = true
            return true
        }
        if isDue { BlockingWork.start { self.synchronize() } }
    }

    private func synchronize() {
        var failure: Errno?
        do throws(Errno) { try directory.synchronizeFileSystem() } catch { failure = error }
        state.withLock { state in
            state.failure = state.failure ?? failure
            state.isRunning = false
        }
        state.notifyAll()
    }

    /// Waits until all files that were written are on stable storage.
    /// - Returns: the error, if there is one: then files may be lost after a crash of the system.
    func finish() async -> Errno? {
        await BlockingWork.run {
            self.state.waitForever { (state) -> Void? in
                if state.isRunning { return nil }
                state.isRunning = true
                return ()
            }
            self.synchronize()
            return self.state.withLock { $0.failure }
        }
    }
}
