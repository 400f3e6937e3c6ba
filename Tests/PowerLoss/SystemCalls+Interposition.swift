import CLinux
import Glibc

// These functions replace those of the C library in this process, both for Onward's code and for SQLite. Each makes the
// real call and records it; a synchronization of a recorded file is only recorded. The code under test needs no change.

/// Replaces open(2) and records the call.
@_cdecl("open")
public func interposedOpen(_ path: UnsafePointer<CChar>, _ flags: CInt, _ mode: mode_t) -> CInt {
    recorder.open(AT_FDCWD, path, flags) { Real.open(path, flags, mode) }
}

/// The form of open(2) for large files.
@_cdecl("open64")
public func interposedOpen64(_ path: UnsafePointer<CChar>, _ flags: CInt, _ mode: mode_t) -> CInt {
    recorder.open(AT_FDCWD, path, flags) { Real.open(path, flags, mode) }
}

/// Replaces openat(2) and records the call.
@_cdecl("openat")
public func interposedOpenat(
    _ directory: CInt, _ path: UnsafePointer<CChar>, _ flags: CInt, _ mode: mode_t
) -> CInt {
    recorder.open(directory, path, flags) { Real.openat(directory, path, flags, mode) }
}

/// Replaces close(2) and records the call.
@_cdecl("close")
public func interposedClose(_ descriptor: CInt) -> CInt { recorder.close(descriptor) }

/// Replaces pwrite(2) and records the call.
@_cdecl("pwrite")
public func interposedPwrite(_ descriptor: CInt, _ bytes: UnsafeRawPointer?, _ count: Int, _ offset: off_t) -> Int {
    recorder.write(descriptor, bytes, count, offset)
}

/// The form of pwrite(2) for large files.
@_cdecl("pwrite64")
public func interposedPwrite64(_ descriptor: CInt, _ bytes: UnsafeRawPointer?, _ count: Int, _ offset: off_t) -> Int {
    recorder.write(descriptor, bytes, count, offset)
}

/// Replaces ftruncate(2) and records the call.
@_cdecl("ftruncate")
public func interposedFtruncate(_ descriptor: CInt, _ size: off_t) -> CInt { recorder.truncate(descriptor, size) }

/// The form of ftruncate(2) for large files.
@_cdecl("ftruncate64")
public func interposedFtruncate64(_ descriptor: CInt, _ size: off_t) -> CInt { recorder.truncate(descriptor, size) }

/// Replaces fsync(2) and records the call.
@_cdecl("fsync")
public func interposedFsync(_ descriptor: CInt) -> CInt {
    recorder.synchronize(descriptor, withAttributes: true) { Real.fsync(descriptor) }
}

/// Replaces fdatasync(2) and records the call.
@_cdecl("fdatasync")
public func interposedFdatasync(_ descriptor: CInt) -> CInt {
    recorder.synchronize(descriptor, withAttributes: false) { Real.fdatasync(descriptor) }
}

/// Replaces syncfs(2) and records the call.
@_cdecl("syncfs")
public func interposedSyncfs(_ descriptor: CInt) -> CInt { recorder.synchronizeAll(descriptor) }

/// Replaces fstatfs(2). The simulated disk has ext4, so that the store uses syncfs(2).
@_cdecl("fstatfs")
public func interposedFstatfs(_ descriptor: CInt, _ status: UnsafeMutablePointer<statfs>) -> CInt {
    let result = Real.fstatfs(descriptor, status)
    if result == 0 && recorder.isRecorded(descriptor) { status.pointee.f_type = __fsword_t(ONWARD_EXT4_MAGIC) }
    return result
}

/// Replaces mkdir(2) and records the call.
@_cdecl("mkdir")
public func interposedMkdir(_ path: UnsafePointer<CChar>, _ mode: mode_t) -> CInt {
    recorder.makeDirectory(AT_FDCWD, path) { Real.mkdir(path, mode) }
}

/// Replaces mkdirat(2) and records the call.
@_cdecl("mkdirat")
public func interposedMkdirat(_ directory: CInt, _ path: UnsafePointer<CChar>, _ mode: mode_t) -> CInt {
    recorder.makeDirectory(directory, path) { Real.mkdirat(directory, path, mode) }
}

/// Replaces unlink(2) and records the call.
@_cdecl("unlink")
public func interposedUnlink(_ path: UnsafePointer<CChar>) -> CInt {
    recorder.unlink(AT_FDCWD, path) { Real.unlink(path) }
}

/// Replaces unlinkat(2) and records the call.
@_cdecl("unlinkat")
public func interposedUnlinkat(_ directory: CInt, _ path: UnsafePointer<CChar>, _ flags: CInt) -> CInt {
    recorder.unlink(directory, path) { Real.unlinkat(directory, path, flags) }
}

/// Replaces renameat(2) and records the call.
@_cdecl("renameat")
public func interposedRenameat(
    _ directory: CInt, _ path: UnsafePointer<CChar>, _ newDirectory: CInt, _ newPath: UnsafePointer<CChar>
) -> CInt {
    recorder.rename(directory, path, newDirectory, newPath) { Real.renameat(directory, path, newDirectory, newPath) }
}

/// Replaces renameat2(2) and records the call.
@_cdecl("renameat2")
public func interposedRenameat2(
    _ directory: CInt, _ path: UnsafePointer<CChar>, _ newDirectory: CInt, _ newPath: UnsafePointer<CChar>,
    _ flags: UInt32
) -> CInt {
    recorder.rename(directory, path, newDirectory, newPath, isExchange: flags & 2 != 0) {
        Real.renameat2(directory, path, newDirectory, newPath, flags)
    }
}

/// Replaces linkat(2) and records the call.
@_cdecl("linkat")
public func interposedLinkat(
    _ directory: CInt, _ path: UnsafePointer<CChar>, _ newDirectory: CInt, _ newPath: UnsafePointer<CChar>,
    _ flags: CInt
) -> CInt {
    recorder.link(directory, path, newDirectory, newPath) {
        Real.linkat(directory, path, newDirectory, newPath, flags)
    }
}

/// Replaces futimens(2) and records the call.
@_cdecl("futimens")
public func interposedFutimens(_ descriptor: CInt, _ times: UnsafePointer<timespec>?) -> CInt {
    recorder.setTimes(descriptor, times)
}

/// Replaces fstat(2).
@_cdecl("fstat")
public func interposedFstat(_ descriptor: CInt, _ status: UnsafeMutablePointer<stat>) -> CInt {
    let result = Real.fstat(descriptor, status)
    if result == 0 { recorder.normalizeStatus(descriptor, nil, &status.pointee) }
    return result
}

/// Replaces fstatat(2).
@_cdecl("fstatat")
public func interposedFstatat(
    _ directory: CInt, _ path: UnsafePointer<CChar>, _ status: UnsafeMutablePointer<stat>, _ flags: CInt
) -> CInt {
    let result = Real.fstatat(directory, path, status, flags)
    if result == 0 { recorder.normalizeStatus(directory, path, &status.pointee) }
    return result
}
