import Foundation
import HTTPSemantics
import SystemCalls

/// The data to resume an interrupted transfer, also in another process and after a restart of the machine.
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
        guard bytes.count <= Self.maximumSize else {
            throw TransferError(.invalidRequest, "The request is too large for resume data of 64 KiB.")
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
    static let maximumSize = 64 << 10
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
        guard data.count <= maximumSize else { throw refusal("it is larger than 64 KiB") }
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
