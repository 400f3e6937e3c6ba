import CLinux
import Glibc

/// The stack of the current thread.
package enum ThreadStack {
    /// The bytes below the current frame that are kept, for the frames of the calls in ``releaseUnused()``.
    private static let margin: UInt = 4096

    /// Gives the memory that earlier, deeper calls have used back to the system (madvise(2)). Call this function before a
    /// long wait, on a thread that was started by pthread_create(3).
    package static func releaseUnused() {
        var attributes = pthread_attr_t()
        guard pthread_getattr_np(pthread_self(), &attributes) == 0 else { return }
        defer { pthread_attr_destroy(&attributes) }
        var start: UnsafeMutableRawPointer?
        var size = 0
        guard pthread_attr_getstack(&attributes, &start, &size) == 0, let start else { return }
        let current = withUnsafeMutablePointer(to: &size) { UInt(bitPattern: $0) }
        let lowest = UInt(bitPattern: start)
        // Under a sanitizer, variables may be outside the stack.
        guard current > lowest + margin, current < lowest + UInt(size) else { return }
        let page = UInt(sysconf(Int32(_SC_PAGESIZE)))
        let end = (current - margin) & ~(page - 1)
        if end > lowest { madvise(start, Int(end - lowest), MADV_DONTNEED) }
    }
}
