import Foundation
import SystemCalls

extension ResumeData {
    /// Writes the data to a file, which replaces a file of that name in one step. A crash at any moment leaves the old
    /// content or the new one, and may leave a file `.resume-….tmp` in the same directory.
    ///
    /// When this returns, the file is on stable storage. It has mode 0600: only its owner can access it. If the name is a
    /// symbolic link, the link itself is replaced. The call blocks until the disk has finished.
    /// - Parameter file: a file URL; its directory must exist.
    /// - Throws: `storageUnusable`, with the `Errno` as ``TransferError/underlying``, also for a URL with another scheme.
    public func write(to file: URL) throws(TransferError) { try write(to: FilePath(requiringFile: file)) }

    /// Writes the data to a file whose path need not be UTF-8.
    package func write(to file: FilePath) throws(TransferError) {
        do throws(Errno) {
            guard !file.containsNUL else { throw .invalidArgument }
            let directory = try FileDescriptor.open(file.directory, [.readOnly, .directory])
            try directory.replaceFile(
                file.lastComponent, with: [UInt8](data), by: FilePath(".resume-\(UUID().uuidString).tmp"))
        } catch {
            throw TransferError(
                .storageUnusable, "The resume data cannot be written to \(file).", underlying: error)
        }
    }

    /// Reads a file that ``write(to:)`` has written. Use only a file that no other user can change: the data names a file
    /// to upload, or one to replace.
    /// - Parameter file: a file URL.
    /// - Throws: `storageUnusable` if the file cannot be read, with the `Errno` as ``TransferError/underlying``
    ///   (`noSuchFile` if the file does not exist); `storageUnusable` also for a URL with another scheme;
    ///   `resumeDataInvalid` if the content is not resume data of a supported version.
    public init(contentsOf file: URL) throws(TransferError) {
        try self.init(contentsOf: FilePath(requiringFile: file))
    }

    /// Reads a file whose path need not be UTF-8.
    package init(contentsOf file: FilePath) throws(TransferError) {
        let content: [UInt8]
        do throws(Errno) {
            guard !file.containsNUL else { throw .noSuchFile }
            content = try FileDescriptor.open(file, [.readOnly, .nonBlocking]).content(atMost: Self.maximumSize)
        } catch {
            if error == .fileTooLarge {
                throw TransferError(.resumeDataInvalid, "\(file) is no resume data: it is larger than 64 KiB.")
            }
            throw TransferError(.storageUnusable, "The resume data in \(file) cannot be read.", underlying: error)
        }
        try self.init(Data(content))
    }
}

extension FilePath {
    /// - Throws: `storageUnusable` if `url` is no file URL.
    init(requiringFile url: URL) throws(TransferError) {
        guard url.isFileURL else { throw TransferError(.storageUnusable, "The URL must be a file URL.") }
        self.init(url)
    }
}

extension ResumeData: Codable {
    /// Decodes the bytes as one value.
    /// - Throws: `DecodingError`, with a ``TransferError`` as its underlying error if the bytes are not resume data of a
    ///   supported version.
    public init(from decoder: any Decoder) throws {
        let bytes = try decoder.singleValueContainer().decode(Data.self)
        do {
            try self.init(bytes)
        } catch {
            throw DecodingError.dataCorrupted(
                .init(codingPath: decoder.codingPath, debugDescription: error.message, underlyingError: error))
        }
    }

    /// Encodes the bytes as one value, which in JSON is a text in base64.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(data)
    }
}
