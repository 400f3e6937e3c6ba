import Foundation

/// Resume data as a part of another stored form, which has its own version: the JSON of the data without its header.
package struct EmbeddedResumeData: Codable {
    package let data: ResumeData

    package init(_ data: ResumeData) { self.data = data }

    package init(from decoder: any Decoder) throws {
        let record = try ResumeRecord(from: decoder)
        guard record.isValid else {
            throw DecodingError.dataCorrupted(
                .init(codingPath: decoder.codingPath, debugDescription: "the resume data contradicts itself"))
        }
        data = try ResumeData(record)
    }

    package func encode(to encoder: any Encoder) throws { try data.record.encode(to: encoder) }
}

extension ResumeData {
    /// Bytes that resume data has at most.
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
            throw TransferError(.internalFailure, "The resume data cannot be written.", underlying: "\(error)")
        }
        let data = Data(magic + [UInt8(version >> 8), UInt8(version & 0xFF)]) + text
        guard data.count <= maximumSize else {
            throw TransferError(.invalidRequest, "The request is too large for resume data of 64 KiB.")
        }
        return data
    }

    /// - Parameter data: with indices from zero.
    static func decode(_ data: Data) throws(TransferError) -> ResumeRecord {
        func refusal(_ reason: String) -> TransferError {
            TransferError(.resumeDataInvalid, "This is not usable resume data: \(reason).")
        }
        guard data.count <= maximumSize else { throw refusal("it is larger than 64 KiB") }
        guard data.count > headerSize, data.starts(with: magic) else { throw refusal("it does not begin with RSMD") }
        let number = UInt16(data[4]) << 8 | UInt16(data[5])
        guard number == version else { throw refusal("its version is \(number), known is \(version)") }
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
