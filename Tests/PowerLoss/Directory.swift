import Glibc
import SystemCalls

/// Reads and removes directory trees.
enum Directory {
    /// The content of every file below `root`, keyed by the path relative to `root`.
    static func contents(_ root: String, _ prefix: String = "") throws(Errno) -> [String: [UInt8]] {
        var result: [String: [UInt8]] = [:]
        let directory = try FileDescriptor.open(root + "/" + prefix, [.readOnly, .directory])
        for name in try directory.entryNames() {
            let path = prefix.isEmpty ? name : prefix + "/" + name
            if try directory.status(at: name).isDirectory {
                result.merge(try contents(root, path)) { first, _ in first }
            } else {
                let file = try directory.open(at: name, .readOnly)
                var bytes = [UInt8](repeating: 0, count: Int(try file.status().size))
                _ = try bytes.withUnsafeMutableBytes { buffer in
                    Result { () throws(Errno) in try file.read(into: buffer, at: 0) }
                }.get()
                result[path] = bytes
            }
        }
        return result
    }

    static func remove(_ root: String) throws(Errno) {
        let directory = try FileDescriptor.open(root, [.readOnly, .directory, .noFollow])
        for name in try directory.entryNames() {
            if try directory.status(at: name).isDirectory {
                try remove(root + "/" + name)
            } else {
                try directory.unlink(at: name)
            }
        }
        let parent = root[..<(root.lastIndex(of: "/") ?? root.startIndex)]
        try FileDescriptor.open(String(parent), [.readOnly, .directory])
            .removeDirectory(at: String(root.dropFirst(parent.utf8.count + 1)))
    }
}
