/// One change that a process made to the file system, or one request to make changes durable. A file is identified by a
/// number, which stays the same under every name; a directory is identified by its path.
enum DiskEvent {
    case create(String, file: Int)
    case makeDirectory(String)
    case write(file: Int, offset: Int, bytes: [UInt8])
    case truncate(file: Int, size: Int)
    /// The time is in nanoseconds since 1970.
    case setModified(file: Int, Int64)
    case link(String, file: Int)
    case remove(String)
    case move(String, to: String)
    case exchange(String, String)
    case synchronize(file: Int, withAttributes: Bool)
    case synchronizeDirectory(String)
    case synchronizeAll
}

extension DiskEvent: CustomStringConvertible {
    var description: String {
        switch self {
        case .create(let path, let file): "create \(path) as \(file)"
        case .makeDirectory(let path): "mkdir \(path)"
        case .write(let file, let offset, let bytes): "write \(file), \(bytes.count) bytes at \(offset)"
        case .truncate(let file, let size): "truncate \(file) to \(size)"
        case .setModified(let file, _): "set the time of \(file)"
        case .link(let path, let file): "link \(file) as \(path)"
        case .remove(let path): "unlink \(path)"
        case .move(let path, let newPath): "rename \(path) to \(newPath)"
        case .exchange(let path, let other): "exchange \(path) and \(other)"
        case .synchronize(let file, let withAttributes): "\(withAttributes ? "fsync" : "fdatasync") \(file)"
        case .synchronizeDirectory(let path): "fsync directory \(path.isEmpty ? "." : path)"
        case .synchronizeAll: "syncfs"
        }
    }
}
