import Foundation
import HTTPSemantics

/// The content of resume data.
struct ResumeRecord: Sendable, Hashable, Codable {
    enum Content: Sendable, Hashable {
        case upload(UploadCheckpoint)
        case download(DownloadCheckpoint)
    }

    /// The caller's request, with only the fields that are known to authorize no one.
    struct Request: Sendable, Hashable, Codable {
        var uri: String
        var method: String
        /// Name and value, in order.
        var fields: [[String]]

        init(_ request: TransferRequest) {
            uri = RequestURI(request.uri)?.text ?? ""
            method = request.method.rawValue
            fields = request.fields.withoutSecrets.map { [$0.name, $0.value] }
        }

        var transferRequest: TransferRequest {
            TransferRequest(
                uri, method: Method(rawValue: method), fields: Fields(fields.map { ($0.first ?? "", $0.last ?? "") }))
        }

        var isValid: Bool {
            RequestURI(uri)?.text == uri && Fields.isValidName(method) && fields.allSatisfy { $0.count == 2 }
                && transferRequest.fields.firstInvalid == nil
                && !transferRequest.fields.contains { Fields.isSecret($0.name) }
        }
    }

    /// Identifies the transfer through all its resumptions.
    var id: UUID
    /// Counts the tickets issued for the transfer so far.
    var generation: Int
    /// Seconds since 1970.
    var createdAt: Int64
    /// Whether the data is valid only as long as the ticket of its transfer allows it.
    var hasTicket: Bool
    var request: Request
    var content: Content

    var ticket: ResumeTicket? { hasTicket ? ResumeTicket(id: id, generation: generation) : nil }

    var isValid: Bool {
        guard (0..<1 << 53).contains(generation), createdAt >= 0, request.isValid else { return false }
        return switch content {
        case .upload(let checkpoint): checkpoint.isValid
        case .download(let checkpoint): checkpoint.isValid
        }
    }
}

extension ResumeRecord.Content: Codable {
    private enum CodingKeys: String, CodingKey { case upload, download }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        guard container.allKeys.count == 1 else {
            throw DecodingError.dataCorrupted(
                .init(codingPath: decoder.codingPath, debugDescription: "one of upload and download is needed"))
        }
        if let checkpoint = try container.decodeIfPresent(UploadCheckpoint.self, forKey: .upload) {
            self = .upload(checkpoint)
        } else {
            self = .download(try container.decode(DownloadCheckpoint.self, forKey: .download))
        }
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        switch self {
        case .upload(let checkpoint): try container.encode(checkpoint, forKey: .upload)
        case .download(let checkpoint): try container.encode(checkpoint, forKey: .download)
        }
    }
}
