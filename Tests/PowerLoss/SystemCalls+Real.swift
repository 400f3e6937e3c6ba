import CLinux
import Glibc

/// The functions of the C library that this executable replaces.
enum Real {
    typealias Open = @convention(c) (UnsafePointer<CChar>, CInt, mode_t) -> CInt
    typealias OpenAt = @convention(c) (CInt, UnsafePointer<CChar>, CInt, mode_t) -> CInt
    typealias Close = @convention(c) (CInt) -> CInt
    typealias Write = @convention(c) (CInt, UnsafeRawPointer?, Int, off_t) -> Int
    typealias Truncate = @convention(c) (CInt, off_t) -> CInt
    typealias Synchronize = @convention(c) (CInt) -> CInt
    typealias MakeDirectory = @convention(c) (UnsafePointer<CChar>, mode_t) -> CInt
    typealias MakeDirectoryAt = @convention(c) (CInt, UnsafePointer<CChar>, mode_t) -> CInt
    typealias Unlink = @convention(c) (UnsafePointer<CChar>) -> CInt
    typealias UnlinkAt = @convention(c) (CInt, UnsafePointer<CChar>, CInt) -> CInt
    typealias Rename = @convention(c) (CInt, UnsafePointer<CChar>, CInt, UnsafePointer<CChar>) -> CInt
    typealias Rename2 = @convention(c) (CInt, UnsafePointer<CChar>, CInt, UnsafePointer<CChar>, UInt32) -> CInt
    typealias Link = @convention(c) (CInt, UnsafePointer<CChar>, CInt, UnsafePointer<CChar>, CInt) -> CInt
    typealias SetTimes = @convention(c) (CInt, UnsafePointer<timespec>?) -> CInt
    typealias StatusAt = @convention(c) (CInt, UnsafePointer<CChar>, UnsafeMutablePointer<stat>, CInt) -> CInt
    typealias FileSystemStatus = @convention(c) (CInt, UnsafeMutablePointer<statfs>) -> CInt
    typealias Status = @convention(c) (CInt, UnsafeMutablePointer<stat>) -> CInt

    static let open: Open = find("open")
    static let openat: OpenAt = find("openat")
    static let close: Close = find("close")
    static let pwrite: Write = find("pwrite")
    static let ftruncate: Truncate = find("ftruncate")
    static let fsync: Synchronize = find("fsync")
    static let fdatasync: Synchronize = find("fdatasync")
    static let syncfs: Synchronize = find("syncfs")
    static let fstatfs: FileSystemStatus = find("fstatfs")
    static let mkdir: MakeDirectory = find("mkdir")
    static let mkdirat: MakeDirectoryAt = find("mkdirat")
    static let unlink: Unlink = find("unlink")
    static let unlinkat: UnlinkAt = find("unlinkat")
    static let renameat: Rename = find("renameat")
    static let renameat2: Rename2 = find("renameat2")
    static let linkat: Link = find("linkat")
    static let futimens: SetTimes = find("futimens")
    static let fstat: Status = find("fstat")
    static let fstatat: StatusAt = find("fstatat")

    private static func find<Function>(_ name: String) -> Function {
        let next = UnsafeMutableRawPointer(bitPattern: -1)  // RTLD_NEXT
        guard let symbol = dlsym(next, name) else { abort() }
        return unsafeBitCast(symbol, to: Function.self)
    }
}
