import Foundation
import SystemCalls

/// The destination of a download.
public struct DownloadDestination: Sendable, Hashable {
    /// The path of the file; `nil` for a file in the client's storage directory.
    package let path: FilePath?
    /// A directory above the file, below which no symbolic link in the path is followed; `nil` if symbolic links are
    /// followed.
    package let root: FilePath?

    /// A file in the client's storage directory. The caller moves or removes it when the download is complete.
    public static let temporary = DownloadDestination(path: nil)

    /// A file with this path. It gets its name when it is complete, and replaces a file that had the name before. Until
    /// then the partial file is in the same directory. Only a file or a symbolic link to a file is replaced.
    public static func file(_ path: String) -> DownloadDestination { .file(FilePath(path)) }

    /// A file with this file URL, as for ``file(_:)-(String)``. With a URL of another scheme the download ends with the
    /// code `destinationUnusable`.
    public static func file(_ url: URL) -> DownloadDestination { .file(url.isFileURL ? FilePath(url) : FilePath("")) }

    /// A file whose path need not be UTF-8.
    /// - Parameter root: an absolute path of a directory above the file. If the path contains a symbolic link below
    ///   `root`, the download ends with the code `destinationUnusable`.
    package static func file(_ path: FilePath, beneath root: FilePath? = nil) -> DownloadDestination {
        DownloadDestination(path: path, root: root)
    }

    private init(path: FilePath?, root: FilePath? = nil) {
        self.path = path
        self.root = root
    }
}
