import HTTPTransport
import Foundation
import HTTPSemantics
import SystemCalls

/// The data to resume an interrupted transfer, even in another process and after a restart of the machine.
///
/// The bytes are `RSMD`, a version in two bytes and a JSON text, 64 KiB at most. They contain no credentials, but they
/// contain the URI of an upload resource, with which the upload can be changed: keep them secret. Data of
/// ``Transfer/pause()`` and of errors is valid until later data of the same transfer has been used or the transfer has
/// ended. Two transfers cannot use it at the same time.
public struct ResumeData: Sendable, Hashable {
    /// The kind of transfer that the data resumes.
    public enum Kind: String, Sendable, Hashable {
        case upload
        case download
    }

    /// The bytes to save.
    public var data: Data { bytes ?? (try? ResumeData.encode(record)) ?? Data() }

    /// The encoded bytes; `nil` if ``data`` encodes them only when it is read. A list of many stored transfers, and the
    /// checkpoint of a small upload, need no bytes.
    private let bytes: Data?
    let record: ResumeRecord

    /// Reads bytes that were saved.
    /// - Throws: `resumeDataInvalid` if the bytes are not resume data of a supported version.
    public init(_ data: Data) throws(TransferError) {
        // A slice has indices of its own.
        let bytes = Data(data)
        record = try ResumeData.decode(bytes)
        self.bytes = bytes
    }

    /// - Throws: `invalidRequest` if the bytes are too large.
    init(_ record: ResumeRecord) throws(TransferError) {
        self.record = record
        if record.isSmall {
            bytes = nil
            return
        }
        let bytes = try ResumeData.encode(record)
        guard bytes.count <= Self.maxSize else {
            throw TransferError(.invalidRequest, "The request does not fit into resume data, which has at most 64 KiB.")
        }
        self.bytes = bytes
    }

    /// Data that is part of another stored format. The caller limits its size.
    fileprivate init(embedded record: ResumeRecord) {
        bytes = nil
        self.record = record
    }

    /// The kind of transfer that the data resumes.
    public var kind: Kind {
        switch record.content {
        case .upload: .upload
        case .download: .download
        }
    }

    /// The request that began the transfer, without credentials.
    public var request: TransferRequest { record.request.transferRequest }

    /// The absolute path of the file that is uploaded, or of the destination of the download; `nil` if there is none.
    public var path: String? { file?.repairedText }

    /// The path ``path`` as bytes, which need not be UTF-8.
    package var file: FilePath? {
        switch record.content {
        case .upload(let checkpoint): checkpoint.source.file?.path
        case .download(let checkpoint): checkpoint.destination
        }
    }

    /// The absolute path of the partial file of a download with a destination; `nil` for every other transfer.
    package var partialPath: FilePath? {
        guard case .download(let checkpoint) = record.content, let destination = checkpoint.destination
        else { return nil }
        return destination.directory.appending(checkpoint.partialName)
    }

    /// The number of bytes of the representation that need not be transferred again, according to this data.
    public var position: Int64 {
        switch record.content {
        case .upload(let checkpoint): checkpoint.resumption.acknowledged
        case .download(let checkpoint): checkpoint.received
        }
    }

    /// The length of the representation in bytes; `nil` while it is unknown.
    public var total: Int64? {
        switch record.content {
        case .upload(let checkpoint): checkpoint.resumption.length
        case .download(let checkpoint): checkpoint.total
        }
    }

    /// The time at which the transfer was created, in seconds since 1970.
    public var createdAt: Int64 { record.createdAt }

    /// Whether both have the same bytes.
    public static func == (left: ResumeData, right: ResumeData) -> Bool { left.data == right.data }

    /// Hashes the bytes.
    public func hash(into hasher: inout Hasher) { hasher.combine(data) }
}

extension ResumeData: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// A description without queries and without the URI of the upload resource.
    public var description: String {
        let shown = RequestURI(record.request.uri)?.description(hidingPath: false) ?? ""
        return "\(kind.rawValue) of \(shown) at \(position) of \(total.map(String.init) ?? "unknown")"
    }

    /// The same as ``description``.
    public var debugDescription: String { description }

    /// Shows only ``description``, so that a dump reveals no secret.
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}

/// Resume data inside another stored format that has its own version: the JSON of the data without its header. A reader
/// of that format limits the size.
package struct EmbeddedResumeData: Codable {
    package let data: ResumeData

    package init(_ data: ResumeData) { self.data = data }

    package init(from decoder: any Decoder) throws {
        let record = try ResumeRecord(from: decoder)
        guard record.isValid else {
            throw DecodingError.dataCorrupted(
                .init(codingPath: decoder.codingPath, debugDescription: "the resume data contradicts itself"))
        }
        data = ResumeData(embedded: record)
    }

    package func encode(to encoder: any Encoder) throws { try data.record.encode(to: encoder) }
}

extension ResumeData {
    /// The maximum size of resume data in bytes.
    static let maxSize = 64 << 10
    private static let magic = Array("RSMD".utf8)
    private static let version: UInt16 = 1
    private static let headerSize = 6

    static func encode(_ record: ResumeRecord) throws(TransferError) -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let text: Data
        do {
            text = try encoder.encode(record)
        } catch {
            throw TransferError(.internalFailure, "The resume data cannot be written.", underlying: error)
        }
        return Data(magic + [UInt8(version >> 8), UInt8(version & 0xFF)]) + text
    }

    /// - Parameter data: the bytes, with indices from zero.
    static func decode(_ data: Data) throws(TransferError) -> ResumeRecord {
        func refusal(_ reason: String) -> TransferError {
            TransferError(.resumeDataInvalid, "This is not usable resume data: \(reason).")
        }
        guard data.count <= maxSize else { throw refusal("it is larger than 64 KiB") }
        guard data.count > headerSize, data.starts(with: magic) else { throw refusal("it does not begin with RSMD") }
        let number = UInt16(data[4]) << 8 | UInt16(data[5])
        guard number == version else {
            throw refusal("its version is \(number), but only version \(version) is supported")
        }
        let record: ResumeRecord
        do {
            record = try JSONDecoder().decode(ResumeRecord.self, from: data.dropFirst(headerSize))
        } catch {
            throw refusal("its content is damaged")
        }
        guard record.isValid else { throw refusal("its content contradicts itself") }
        return record
    }
}

extension ResumeData {
    /// Writes the data to a file, which replaces a file of that name in one step. A crash at any moment leaves the old
    /// content or the new one, and may leave a file `.resume-….tmp` in the same directory.
    ///
    /// When this returns, the file is on stable storage. It has mode 0600: only its owner can access it. If the name is a
    /// symbolic link, the link itself is replaced. The call blocks until the disk has finished.
    /// - Parameter file: a file URL; its directory must exist.
    /// - Throws: `storageUnusable`, with the `Errno` as ``TransferError/underlying``, including for a URL with another
    ///   scheme.
    public func write(to file: URL) throws(TransferError) { try write(to: FilePath(requiringFile: file)) }

    /// Writes the data to a file whose path need not be UTF-8.
    package func write(to file: FilePath) throws(TransferError) {
        do throws(Errno) {
            guard !file.hasNUL else { throw .invalidArgument }
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
    ///   (`noSuchFile` if the file does not exist), or if the URL has another scheme; `resumeDataInvalid` if the
    ///   content is not resume data of a supported version.
    public init(contentsOf file: URL) throws(TransferError) {
        try self.init(contentsOf: FilePath(requiringFile: file))
    }

    /// Reads a file whose path need not be UTF-8.
    package init(contentsOf file: FilePath) throws(TransferError) {
        let content: [UInt8]
        do throws(Errno) {
            guard !file.hasNUL else { throw .noSuchFile }
            content = try FileDescriptor.open(file, [.readOnly, .nonBlocking]).content(atMost: Self.maxSize)
        } catch {
            if error == .fileTooLarge {
                throw TransferError(.resumeDataInvalid, "\(file) is not resume data: it is larger than 64 KiB.")
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
    /// - Throws: the error of the encoder.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(data)
    }
}
