import HTTPSemantics
import UploadStorage

/// Candidates for a file name that the server chooses: the sanitized name from the client, then the same name with a
/// number.
struct FreeNames: Sendable {
    private let directory: [String]
    private let stem: String
    private let suffix: String

    /// - Parameters:
    ///   - disposition: the value of `Content-Disposition`.
    ///   - metadata: the parsed `Upload-Metadata`; its file name is used if `disposition` has no valid file name.
    init(directory: [String], disposition: String?, metadata: UploadMetadata? = nil) {
        let proposals = [disposition.flatMap { ContentDisposition(parsing: $0)?.filename }, metadata?.filename]
        let safe = proposals.compactMap { $0.flatMap { SafeFileName(sanitizing: $0)?.value } }
        self.init(directory: directory, name: safe.first ?? "upload-\(RequestID())")
    }

    /// - Parameter name: the first candidate, a valid name of a file.
    init(directory: [String], name: String) {
        self.directory = directory
        // A name with a longer extension would have no room for a number.
        if let dot = name.lastIndex(of: "."), dot != name.startIndex,
            name[dot...].utf8.count <= SafeFileName.maxExtensionLength
        {
            stem = String(name[..<dot])
            suffix = String(name[dot...])
        } else {
            stem = name
            suffix = ""
        }
    }

    /// The candidate number `attempt`, starting with 0. Later candidates end with random hexadecimal digits, so that
    /// one of them is free.
    func name(_ attempt: Int) -> PublishedName? {
        let mark: String =
            switch attempt {
            case 0: ""
            case 1...20: " (\(attempt))"
            default: " (\(RequestID()))"
            }
        var base = stem
        while base.utf8.count + mark.utf8.count + suffix.utf8.count > SafeFileName.maxLength { base.removeLast() }
        return PublishedName(segments: directory + [base + mark + suffix])
    }
}
