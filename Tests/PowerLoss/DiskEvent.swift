/// One change that a process requested of the file system, or a request that changes become durable. Files bear numbers, which they
/// keep under every name; directories are known by their paths.
enum DiskEvent {
    case create(String, file: Int)
    case makeDirectory(String)
    case write(file: Int, offset: Int, bytes: [UInt8])
    case truncate(file: Int, size: Int)
    /// Nanoseconds since 1970.
    case setModified(file: Int, Int64)
    case link(String, file: Int)
    case remove(String)
    case move(String, to: String)
    case exchange(String, String)
    case synchronize(file: Int, withAttributes: Bool)
    case synchronizeDirectory(String)
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
        }
    }
}
