import HTTPTransport
import Digests
import Foundation
import SystemCalls

/// A source that a later process can identify.
protocol RecognizableSource: UploadSource {
    /// Returns a record that identifies the source. This reads a part of the content.
    func record() throws(TransferError) -> SourceRecord

    /// Whether the source is unchanged since it was opened.
    var isUnchanged: Bool { get }
}

/// A regular file. It is opened once, so an upload continues to read the same file if another file gets its name. After
/// a change of its size or modification time every read fails.
public struct FileSource: UploadSource {
    /// The file's absolute path without symbolic links.
    public var path: String { file.repairedText }
    /// The path ``path`` as bytes, which need not be UTF-8.
    package let file: FilePath
    private let descriptor: FileDescriptor
    /// The attributes that the file had when it was opened.
    package let status: FileStatus

    /// Opens a file for reading. A symbolic link is followed only at this time.
    /// - Throws: `noSuchSource` if there is no such file, if it is not a regular file, or if its size is not the number
    ///   of its bytes, as in /proc and /sys; `sourceUnavailable` if it cannot be opened or read.
    public init(path: String) throws(TransferError) { try self.init(FilePath(path)) }

    /// Opens a file for reading. A symbolic link is followed only at this time.
    /// - Parameter url: a file URL.
    /// - Throws: `noSuchSource`, including for a URL with another scheme, or `sourceUnavailable`, as ``init(path:)``.
    public init(url: URL) throws(TransferError) {
        guard url.isFileURL else {
            throw TransferError(.noSuchSource, "The source must be a file URL.")
        }
        try self.init(FilePath(url))
    }

    /// Opens a file for reading. A symbolic link is followed only at this time.
    /// - Parameter path: a path whose bytes need not be UTF-8.
    /// - Throws: `noSuchSource` or `sourceUnavailable`, as ``init(path:)``.
    package init(_ path: FilePath) throws(TransferError) {
        let status: FileStatus
        let resolved: FilePath
        do throws(Errno) {
            // The status is read before the path is resolved: in /proc the path of a pipe or a socket resolves to no
            // file.
            status = try path.status()
            resolved = status.isRegular ? try path.resolved() : path
        } catch {
            throw TransferError(.noSuchSource, "The file \(path) cannot be opened.", underlying: error)
        }
        if let reason = status.reasonAgainstUpload { throw TransferError(.noSuchSource, "\(path) \(reason)") }
        try self.init(opening: resolved)
        try checkSize(of: path)
    }

    /// Opens the file that resume data names.
    /// - Throws: `noSuchSource`, for example if the last component is a symbolic link; `sourceUnavailable`;
    ///   `sourceChanged` if the file belongs neither to this user nor to root, or has another owner than before.
    init(recorded file: SourceRecord.File) throws(TransferError) {
        try self.init(opening: file.path)
        guard status.owner == file.owner, status.owner == ProcessControl.effectiveUser || status.owner == 0 else {
            throw TransferError(
                .sourceChanged,
                "The file \(file.path) belongs to another user than when its upload began, or to neither you nor root.")
        }
    }

    /// Opens an entry of a directory for reading. A symbolic link is not followed.
    /// - Parameter path: the absolute path of the entry.
    /// - Throws: `noSuchSource` or `sourceUnavailable`, as ``init(path:)``, except that the size is not compared with the
    ///   content.
    package init(_ name: FilePath, in directory: FileDescriptor, path: FilePath) throws(TransferError) {
        try self.init(path) { (flags) throws(Errno) in try directory.open(at: name, flags) }
    }

    /// - Parameter path: a path whose last component is no symbolic link.
    private init(opening path: FilePath) throws(TransferError) {
        try self.init(path) { (flags) throws(Errno) in try FileDescriptor.open(path, flags) }
    }

    private init(
        _ path: FilePath, open: (FileDescriptor.OpenFlags) throws(Errno) -> FileDescriptor
    ) throws(TransferError) {
        do throws(Errno) {
            // Non-blocking, because opening a FIFO would wait for a writer.
            descriptor = try open([.readOnly, .noFollow, .nonBlocking])
            status = try descriptor.status()
        } catch {
            let isAbsent = [.noSuchFile, .notDirectory, .tooManySymbolicLinks, .noSuchDevice].contains(error)
            throw TransferError(
                isAbsent ? .noSuchSource : .sourceUnavailable, "The file \(path) cannot be opened.",
                underlying: error)
        }
        if let reason = status.reasonAgainstUpload { throw TransferError(.noSuchSource, "\(path) \(reason)") }
        file = path
    }

    /// Throws if the size is not the number of bytes. Files that the system generates have such sizes (proc(5),
    /// sysfs(5)). An upload of such a file could not be verified or resumed.
    private func checkSize(of path: FilePath) throws(TransferError) {
        let size = status.size
        let hasBytes: Bool
        do throws(Errno) {
            hasBytes = try hasByte(at: max(0, size - 1))
        } catch {
            throw TransferError(.sourceUnavailable, "The file \(path) cannot be read.", underlying: error)
        }
        guard hasBytes == (size > 0) else {
            let reason =
                size == 0 ? "has content although its size is 0" : "has fewer bytes than its size of \(size)"
            throw TransferError(
                .noSuchSource,
                "\(path) \(reason), so an upload cannot be verified. Copy its content to a regular file first.")
        }
    }

    private func hasByte(at offset: Int64) throws(Errno) -> Bool {
        var byte: UInt8 = 0
        return try withUnsafeMutableBytes(of: &byte) { (byte) throws(Errno) in
            try descriptor.read(into: byte, at: offset)
        } > 0
    }

    /// The size of the file in bytes when it was opened.
    public var length: Int64? { status.size }

    /// Reads bytes of the file.
    /// - Throws: `changed` if the size or the modification time of the file has changed since it was opened;
    ///   `unavailable` or `system` if the file cannot be read.
    public func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(SourceError) -> Int {
        let count: Int
        do throws(Errno) {
            count = try descriptor.read(into: buffer, at: offset)
        } catch {
            throw .system(error)
        }
        // The check follows the read, so that a change during the read is detected.
        guard isUnchanged else { throw .changed }
        return count
    }

    /// Has no effect: a file can be read again.
    public func acknowledged(upTo offset: Int64) {}
}

extension FileSource: RecognizableSource {
    private static let sampleSize = 64 << 10

    var isUnchanged: Bool {
        guard let now = try? descriptor.status() else { return false }
        return now.size == status.size && now.modified == status.modified
    }

    func record() throws(TransferError) -> SourceRecord {
        var digest = RunningDigest(.sha256)
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.sampleSize, alignment: 1)
        defer { buffer.deallocate() }
        let size = Int64(Self.sampleSize)
        do throws(Errno) {
            for start in [0, max(size, status.size - size)] where start < status.size {
                // If more were requested, another call would find the end.
                let wanted = Int(min(size, status.size - start))
                let count = try descriptor.read(
                    into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted]), at: start)
                digest.update(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            }
        } catch {
            throw TransferError(.sourceUnavailable, "The file \(file) cannot be read.", underlying: error)
        }
        let modified = status.modified
        return SourceRecord(
            file: SourceRecord.File(
                path: file, modified: modified.seconds &* 1_000_000_000 &+ modified.nanoseconds, inode: status.inode,
                device: status.device, owner: status.owner),
            size: status.size, sample: digest.finalized().hexadecimal)
    }
}

extension FileStatus {
    /// The reason why a file of this kind cannot be uploaded; `nil` for a regular one.
    fileprivate var reasonAgainstUpload: String? {
        switch kind {
        case .regular: nil
        case .directory: "is a directory; only files can be uploaded."
        case .pipe: "is a pipe, which cannot be read again after an interruption. Write its content to a file first."
        case .socket: "is a socket; only files can be uploaded."
        case .symbolicLink, .device: "is a device; only files can be uploaded."
        }
    }
}
