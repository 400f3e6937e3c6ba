import Foundation
import HTTPSemantics
import ResumableUpload

extension ProblemType {
    /// The problem that the content of a response describes (RFC 9457); `nil` for any other content.
    init?(content: [UInt8], fields: Fields) {
        guard let type = fields["Content-Type"].flatMap({ MediaType(parsing: $0) }),
            type.essence == ProblemDetails.mediaType, content.count <= 64 << 10,
            let document = try? JSONDecoder().decode(Document.self, from: Data(content))
        else { return nil }
        self.init(type: document.type ?? "about:blank", expectedOffset: document.expectedOffset?.value)
    }

    private struct Document: Decodable {
        var type: String?
        var expectedOffset: Offset?

        private enum CodingKeys: String, CodingKey {
            case type
            case expectedOffset = "expected-offset"
        }
    }

    /// A member of another type than expected is ignored (RFC 9457 section 3.1).
    private struct Offset: Decodable {
        let value: Int64?

        init(from decoder: any Decoder) throws {
            let number = try? decoder.singleValueContainer().decode(Int64.self)
            value = number.flatMap { (0...UploadLimits.largestInteger).contains($0) ? $0 : nil }
        }
    }
}
