import CLinux
import Glibc

extension FileDescriptor {
    /// Waits until the content, and the metadata that is needed to read it, is on stable storage (fdatasync(2)).
    ///
    /// After a failure the kernel may have dropped the pages, so a later call that succeeds does not mean that they
    /// were written.
    package func synchronizeData() throws(Errno) {
        _ = try retryingOnInterrupt { fdatasync(rawValue) }
    }

    /// Waits until content and attributes, or the entries of a directory, are on stable storage (fsync(2)).
    package func synchronize() throws(Errno) {
        _ = try retryingOnInterrupt { fsync(rawValue) }
    }

    /// Starts to write the dirty pages of a range. It usually does not wait for the device (sync_file_range(2)).
    package func startWriteBack(at offset: Int64, count: Int64) throws(Errno) {
        _ = try retryingOnInterrupt {
            sync_file_range(rawValue, off_t(offset), off_t(count), UInt32(ONWARD_SYNC_FILE_RANGE_WRITE))
        }
    }

    /// Waits until the pages of a range are written, without any promise of durability (sync_file_range(2)).
    ///
    /// It consumes the write-back error of this open file description: a later ``synchronizeData()`` on the same one
    /// would not report it. Use a description of its own for this call.
    package func awaitWriteBack(at offset: Int64, count: Int64) throws(Errno) {
        let flags =
            ONWARD_SYNC_FILE_RANGE_WAIT_BEFORE | ONWARD_SYNC_FILE_RANGE_WRITE
            | ONWARD_SYNC_FILE_RANGE_WAIT_AFTER
        _ = try retryingOnInterrupt { sync_file_range(rawValue, off_t(offset), off_t(count), UInt32(flags)) }
    }
}
