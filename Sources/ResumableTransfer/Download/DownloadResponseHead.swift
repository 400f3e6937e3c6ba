import HTTPSemantics
import ResumableUpload

/// The head of a final response, as the state machine of a download sees it.
struct DownloadResponseHead: Sendable, Hashable {
    var status: Status
    var fields: Fields
    /// `Location`; `nil` if there is none or it cannot be understood.
    var location: ResolvedLocation?
}

extension DownloadResponseHead {
    /// The value of a field that has one line; `nil` if there are none or several.
    func single(_ name: String) -> String? {
        let values = fields.values(name)
        return values.count == 1 ? values[0] : nil
    }

    /// The length of the content according to the head (RFC 9112 section 6.2).
    var contentLength: Int64? {
        if status == .noContent || status == .resetContent { return 0 }
        guard !fields.contains("Transfer-Encoding"), let text = fields.values("Content-Length").first,
            text.utf8.allSatisfy({ (0x30...0x39).contains($0) })
        else { return nil }
        return Int64(text)
    }

    /// Why the content cannot be taken, whatever it is; `nil` if it can.
    var framingProblem: String? {
        let codings = (fields["Transfer-Encoding"] ?? "").split(separator: ",").map { coding in
            coding.filter { $0 != " " && $0 != "\t" }.lowercased()
        }
        guard codings.allSatisfy({ ["chunked", "identity", ""].contains($0) }) else {
            return "The content has a transfer coding that was not requested."
        }
        // Lines of the same value are one (RFC 9110 section 8.6).
        guard fields.contains("Transfer-Encoding") || Set(fields.values("Content-Length")).count <= 1 else {
            return "The response has several lengths."
        }
        // libcurl takes such content for one that ends with the connection (RFC 9112 section 6.3).
        if let length = single("Content-Length"), !fields.contains("Transfer-Encoding"), Int64(length) == nil,
            length.utf8.allSatisfy({ (0x30...0x39).contains($0) })
        {
            return "The length of the response is no number of bytes."
        }
        return nil
    }
}
