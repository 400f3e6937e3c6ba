import Glibc

extension FileDescriptor {
    /// Takes the exclusive lock of this open file description without waiting; false where another one holds it
    /// (flock(2)). It ends with this object, or with the process, however that ends.
    public func tryLock() throws(Errno) -> Bool {
        do {
            _ = try retryingOnInterrupt { flock(rawValue, LOCK_EX | LOCK_NB) }
            isLocked.store(true, ordering: .relaxed)
            return true
        } catch {
            if error == .wouldBlock { return false }
            throw error
        }
    }
}
