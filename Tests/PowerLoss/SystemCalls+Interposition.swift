import Glibc

// These functions take the place of the C library's in this process, for our own code and for SQLite alike: each does what it
// is asked for and has the recorder note it. Nothing of this is known to the code under test.

@_cdecl("open")
public func interposedOpen(_ path: UnsafePointer<CChar>, _ flags: CInt, _ mode: mode_t) -> CInt {
    recorder.open(AT_FDCWD, path, flags) { Real.open(path, flags, mode) }
}

@_cdecl("open64")
public func interposedOpen64(_ path: UnsafePointer<CChar>, _ flags: CInt, _ mode: mode_t) -> CInt {
    recorder.open(AT_FDCWD, path, flags) { Real.open(path, flags, mode) }
}

@_cdecl("openat")
public func interposedOpenat(
    _ directory: CInt, _ path: UnsafePointer<CChar>, _ flags: CInt, _ mode: mode_t
) -> CInt {
    recorder.open(directory, path, flags) { Real.openat(directory, path, flags, mode) }
}

@_cdecl("close")
public func interposedClose(_ descriptor: CInt) -> CInt { recorder.close(descriptor) }

@_cdecl("pwrite")
public func interposedPwrite(_ descriptor: CInt, _ bytes: UnsafeRawPointer?, _ count: Int, _ offset: off_t) -> Int {
    recorder.write(descriptor, bytes, count, offset)
}

@_cdecl("pwrite64")
public func interposedPwrite64(_ descriptor: CInt, _ bytes: UnsafeRawPointer?, _ count: Int, _ offset: off_t) -> Int {
    recorder.write(descriptor, bytes, count, offset)
}

@_cdecl("ftruncate")
public func interposedFtruncate(_ descriptor: CInt, _ size: off_t) -> CInt { recorder.truncate(descriptor, size) }

@_cdecl("ftruncate64")
public func interposedFtruncate64(_ descriptor: CInt, _ size: off_t) -> CInt { recorder.truncate(descriptor, size) }

@_cdecl("fsync")
public func interposedFsync(_ descriptor: CInt) -> CInt {
    recorder.synchronize(descriptor, withAttributes: true) { Real.fsync(descriptor) }
}

@_cdecl("fdatasync")
public func interposedFdatasync(_ descriptor: CInt) -> CInt {
    recorder.synchronize(descriptor, withAttributes: false) { Real.fdatasync(descriptor) }
}

@_cdecl("mkdir")
public func interposedMkdir(_ path: UnsafePointer<CChar>, _ mode: mode_t) -> CInt {
    recorder.makeDirectory(AT_FDCWD, path) { Real.mkdir(path, mode) }
}

@_cdecl("mkdirat")
public func interposedMkdirat(_ directory: CInt, _ path: UnsafePointer<CChar>, _ mode: mode_t) -> CInt {
    recorder.makeDirectory(directory, path) { Real.mkdirat(directory, path, mode) }
}

@_cdecl("unlink")
public func interposedUnlink(_ path: UnsafePointer<CChar>) -> CInt {
    recorder.unlink(AT_FDCWD, path) { Real.unlink(path) }
}

@_cdecl("unlinkat")
public func interposedUnlinkat(_ directory: CInt, _ path: UnsafePointer<CChar>, _ flags: CInt) -> CInt {
    recorder.unlink(directory, path) { Real.unlinkat(directory, path, flags) }
}

@_cdecl("renameat")
public func interposedRenameat(
    _ directory: CInt, _ path: UnsafePointer<CChar>, _ newDirectory: CInt, _ newPath: UnsafePointer<CChar>
) -> CInt {
    recorder.rename(directory, path, newDirectory, newPath) { Real.renameat(directory, path, newDirectory, newPath) }
}

@_cdecl("renameat2")
public func interposedRenameat2(
    _ directory: CInt, _ path: UnsafePointer<CChar>, _ newDirectory: CInt, _ newPath: UnsafePointer<CChar>,
    _ flags: UInt32
) -> CInt {
    recorder.rename(directory, path, newDirectory, newPath, isExchange: flags & 2 != 0) {
        Real.renameat2(directory, path, newDirectory, newPath, flags)
    }
}

@_cdecl("linkat")
public func interposedLinkat(
    _ directory: CInt, _ path: UnsafePointer<CChar>, _ newDirectory: CInt, _ newPath: UnsafePointer<CChar>,
    _ flags: CInt
) -> CInt {
    recorder.link(directory, path, newDirectory, newPath) {
        Real.linkat(directory, path, newDirectory, newPath, flags)
    }
}

@_cdecl("futimens")
public func interposedFutimens(_ descriptor: CInt, _ times: UnsafePointer<timespec>?) -> CInt {
    recorder.setTimes(descriptor, times)
}

@_cdecl("fstat")
public func interposedFstat(_ descriptor: CInt, _ status: UnsafeMutablePointer<stat>) -> CInt {
    let result = Real.fstat(descriptor, status)
    if result == 0 { recorder.disguise(descriptor, nil, &status.pointee) }
    return result
}

@_cdecl("fstatat")
public func interposedFstatat(
    _ directory: CInt, _ path: UnsafePointer<CChar>, _ status: UnsafeMutablePointer<stat>, _ flags: CInt
) -> CInt {
    let result = Real.fstatat(directory, path, status, flags)
    if result == 0 { recorder.disguise(directory, path, &status.pointee) }
    return result
}
