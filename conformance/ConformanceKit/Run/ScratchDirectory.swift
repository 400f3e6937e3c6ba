import Foundation
import SystemCalls

/// A temporary directory, which is removed with its content when this object is released or ``endProcess(status:)`` is
/// called.
package final class ScratchDirectory: Sendable {
    /// The paths of all directories, each with the path of the file system that is mounted in it. While this lock is
    /// held, no directory is created or removed.
    private static let all = Monitor<[String: String?]>([:])

    let path: String

    init() throws {
        path = try Self.all.withLock { all in
            var template = Array((NSTemporaryDirectory() + "/onward-conformance-XXXXXX").utf8CString)
            guard mkdtemp(&template) != nil else {
                throw RunFailure("a temporary directory cannot be created: \(Errno.current)")
            }
            let path = template.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } ?? "" }
            all[path] = .some(nil)
            return path
        }
    }

    deinit {
        Self.all.withLock { all in
            Self.remove(path, all.removeValue(forKey: path) ?? nil)
        }
    }

    /// Sets the file system to detach before the directory is removed.
    func detachesAtRemoval(_ mountPoint: String) { Self.all.withLock { $0[path] = mountPoint } }

    /// Kills the programs that this process has started, removes all directories, and ends the process.
    package static func endProcess(status: Int32) -> Never {
        all.withLock { all in
            ProcessGroup.killAll {
                for (path, mountPoint) in all { remove(path, mountPoint) }
                ProcessControl.endNow(status)
            }
        }
    }

    private static func remove(_ path: String, _ mountPoint: String?) {
        if let mountPoint { try? FilePath(mountPoint).unmount() }
        // The removal fails if a thread creates a file in the directory meanwhile.
        for _ in 1...10 {
            do { return try FileManager.default.removeItem(atPath: path) } catch { Deadline.pause(.milliseconds(5)) }
        }
    }
}
