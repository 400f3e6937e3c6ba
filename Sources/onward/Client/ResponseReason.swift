import Foundation
import HTTPSemantics
import ResumableTransfer

/// What a server gives as its reason, for people.
enum ResponseReason {
    /// `detail` or `title` of a problem document (RFC 9457), in one line; `nil` for any other content.
    static func of(_ response: TransferResponse) -> String? {
        of(content: response.content, fields: response.fields)
    }

    static func of(content: [UInt8], fields: Fields) -> String? {
        guard let type = fields["Content-Type"].flatMap({ MediaType(parsing: $0) }),
            type.essence == ProblemDetails.mediaType, content.count <= 64 << 10,
            let document = try? JSONDecoder().decode(Document.self, from: Data(content)),
            let text = document.detail ?? document.title, !text.isEmpty
        else { return nil }
        return DisplayText.printable(String(text.prefix(300)))
    }

    /// The first line of content that is text.
    static func firstLine(of response: TransferResponse) -> String? {
        guard let type = response.fields["Content-Type"].flatMap({ MediaType(parsing: $0) }), type.type == "text"
        else { return nil }
        let line = response.content.prefix { $0 != 0x0A && $0 != 0x0D }
        return line.isEmpty ? nil : DisplayText.printable(String(String(decoding: line, as: UTF8.self).prefix(300)))
    }

    private struct Document: Decodable {
        var title: String?
        var detail: String?
    }
}
