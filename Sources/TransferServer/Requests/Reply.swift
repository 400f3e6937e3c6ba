import FoundationEssentials
import HTTPSemantics
import ResumableUpload
import UploadStorage

/// A final response. Its content is not necessarily in memory.
struct Reply: Sendable {
    enum Content: Sendable {
        case bytes([UInt8])
        /// Bytes of a published file.
        case file(PublishedFile, Range<Int64>)
        /// Several ranges of a published file, framed as `multipart/byteranges`.
        case parts(PublishedFile, MultipartByteRanges)
        /// Content that is produced while it is sent.
        case stream(any StreamedContent)
    }

    var status: Status
    var fields: Fields
    var content: Content
    /// The stable code of an error, for the log.
    var code: String?

    init(status: Status, fields: Fields = [:], content: Content = .bytes([]), code: String? = nil) {
        self.status = status
        self.fields = fields
        self.content = content
        self.code = code
    }

    init(_ response: FinalResponse, code: String? = nil) {
        self.init(
            status: response.status, fields: response.fields, content: .bytes(response.content),
            code: code ?? ProblemCode(of: response)?.code)
    }

    init(_ problem: ProblemDetails, fields: Fields = [:]) {
        self.init(FinalResponse(problem, fields: fields), code: problem.code)
    }

    /// The bytes of content; nil if they are unknown before they are sent.
    var contentLength: Int64? {
        switch content {
        case .bytes(let bytes): Int64(bytes.count)
        case .file(_, let range): range.upperBound - range.lowerBound
        case .parts(_, let parts): parts.contentLength
        case .stream: nil
        }
    }
}

/// The stable code in a problem document of a target.
private struct ProblemCode: Decodable {
    let code: String?

    init?(of response: FinalResponse) {
        guard response.fields["Content-Type"] == ProblemDetails.mediaType,
            let found = try? JSONDecoder().decode(ProblemCode.self, from: Data(response.content))
        else { return nil }
        self = found
    }
}
