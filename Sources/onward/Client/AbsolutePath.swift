import Foundation
import Glibc

/// Paths by which commands are known again, whatever the working directory is then.
enum AbsolutePath {
    /// `path` from the root on; its directory without symbolic links, its last component as it is written. `nil` where
    /// there is no such directory.
    static func of(_ path: String) -> String? {
        guard !path.isEmpty, !path.utf8.contains(0) else { return nil }
        var trimmed = path[...]
        while trimmed.count > 1, trimmed.hasSuffix("/") { trimmed.removeLast() }
        let slash = trimmed.lastIndex(of: "/")
        let name = slash.map { String(trimmed[trimmed.index(after: $0)...]) } ?? String(trimmed)
        // These are directories themselves.
        if ["", ".", ".."].contains(name) { return resolved(String(trimmed)) }
        let parent = slash.map { $0 == trimmed.startIndex ? "/" : String(trimmed[..<$0]) } ?? "."
        guard let directory = resolved(parent) else { return nil }
        return directory == "/" ? "/" + name : directory + "/" + name
    }

    static func isDirectory(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }

    private static func resolved(_ path: String) -> String? {
        guard let pointer = realpath(path, nil) else { return nil }
        defer { free(pointer) }
        return String(cString: pointer)
    }
}
