import Glibc
import SystemCalls

/// The content of a directory tree, as a process finds it after a crash.
struct DiskImage {
    struct File {
        var content: [UInt8] = []
        /// The time of the last modification in nanoseconds since 1970.
        var modified: Int64 = 1_000_000_000_000_000_000
    }

    /// Keyed by path; the path of the root is empty.
    var nodes: [String: Disk.Node] = ["": .directory]
    var files: [Int: File] = [:]
    /// The number that the next new file gets.
    var nextFile = 1

    /// Creates the directory `root`, which must not exist, with this content.
    func write(to root: String) throws(Errno) {
        try FileDescriptor.makeDirectory(root)
        for (path, node) in nodes.sorted(by: { $0.key < $1.key }) where !path.isEmpty {
            switch node {
            case .directory: try FileDescriptor.makeDirectory(root + "/" + path)
            case .file(let number):
                let file = files[number] ?? File()
                let descriptor = try FileDescriptor.open(root + "/" + path, [.writeOnly, .create, .exclusive])
                try file.content.withUnsafeBytes { bytes in
                    Result { () throws(Errno) in try descriptor.write(bytes, at: 0) }
                }.get()
                try descriptor.setModified(
                    FileStatus.Time(
                        seconds: file.modified / 1_000_000_000, nanoseconds: file.modified % 1_000_000_000))
            }
        }
    }
}
