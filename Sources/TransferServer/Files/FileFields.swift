import HTTPSemantics
import UploadStorage

/// The representation fields of a file: those of its upload, otherwise those that its name determines.
enum FileFields {
    static let representation = ["Content-Type", "Content-Encoding", "Content-Language"]

    /// The fields of an upload that are stored with the file.
    static func saved(of upload: Fields) -> Fields {
        var saved = Fields()
        for name in representation {
            guard let value = upload[name], !value.isEmpty, Fields.isValidValue(value) else { continue }
            if name == "Content-Type", !isRepresentationType(value) { continue }
            saved.append(name, value)
        }
        if !saved.contains("Content-Type"), let type = UploadMetadata(upload)?.filetype, isRepresentationType(type) {
            saved.append("Content-Type", type)
        }
        return saved
    }

    /// Whether the value can be the media type of a file. Some clients send the media type of appends with the
    /// creation.
    private static func isRepresentationType(_ value: String) -> Bool {
        guard let type = MediaType(parsing: value), Fields.isValidValue(value) else { return false }
        return !["application/partial-upload", "application/offset+octet-stream"].contains(type.essence)
    }

    /// The fields that are sent with the file.
    /// - Parameter showsActiveTypes: whether a file of an active type is shown in a sandbox instead of saved.
    static func served(of file: PublishedFile, named name: String, showsActiveTypes: Bool) -> Fields {
        var fields = file.fields
        fields.reserveCapacity(8)
        if !fields.contains("Content-Type") {
            let suffix = name.split(separator: ".").last.map { $0.lowercased() } ?? ""
            fields.append("Content-Type", types[suffix] ?? "application/octet-stream")
        }
        // An uploaded file must not run as a page of this origin. Every type gets the sandbox, in case a browser
        // guesses another type.
        if !showsActiveTypes, !InertTypes.contain(fields["Content-Type"] ?? "") {
            let disposition = ContentDisposition(type: "attachment", filename: name)
            fields.append("Content-Disposition", disposition.serialized)
        }
        fields.append("X-Content-Type-Options", "nosniff")
        fields.append(
            "Content-Security-Policy",
            "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src 'self'; media-src 'self'")
        return fields
    }

    private static let types: [String: String] = [
        "txt": "text/plain; charset=utf-8", "md": "text/markdown; charset=utf-8", "csv": "text/csv; charset=utf-8",
        "html": "text/html; charset=utf-8", "htm": "text/html; charset=utf-8", "css": "text/css; charset=utf-8",
        "js": "text/javascript; charset=utf-8", "json": "application/json", "xml": "application/xml",
        "pdf": "application/pdf", "zip": "application/zip", "gz": "application/gzip", "tar": "application/x-tar",
        "zst": "application/zstd", "7z": "application/x-7z-compressed", "iso": "application/octet-stream",
        "png": "image/png", "jpg": "image/jpeg", "jpeg": "image/jpeg", "gif": "image/gif", "webp": "image/webp",
        "avif": "image/avif", "heic": "image/heic", "svg": "image/svg+xml", "mp4": "video/mp4", "m4v": "video/mp4",
        "mov": "video/quicktime", "webm": "video/webm", "mkv": "video/matroska", "mp3": "audio/mpeg",
        "m4a": "audio/mp4", "ogg": "audio/ogg", "flac": "audio/flac", "wav": "audio/wav",
    ]
}

/// Media types that a browser shows without executing anything: text, bitmap images, audio, video, fonts, data and
/// archives. Every other type is active: HTML, SVG and other XML, scripts, PDF, Flash, `multipart/…` and unknown
/// types.
enum InertTypes {
    /// Whether a value of Content-Type is an inert type. A malformed value is not inert, because browsers may guess any
    /// type for the file.
    static func contain(_ contentType: String) -> Bool {
        if essences.contains(contentType) { return true }
        guard let type = MediaType(parsing: contentType), !type.subtype.hasSuffix("+xml") else { return false }
        switch type.type {
        case "image", "audio", "video", "font": return !type.subtype.contains("xml") && !type.subtype.contains("svg")
        default: return essences.contains(type.essence)
        }
    }

    private static let essences: Set<String> = [
        "text/plain", "text/csv", "text/tab-separated-values", "text/markdown", "text/css", "text/vtt", "text/calendar",
        "text/vcard", "text/x-log", "text/x-diff", "text/x-patch",
        "application/json", "application/ld+json", "application/geo+json", "application/x-ndjson",
        "application/octet-stream", "application/zip", "application/gzip", "application/x-gzip", "application/zstd",
        "application/x-tar", "application/x-xz", "application/x-bzip2", "application/x-7z-compressed",
        "application/ogg", "application/mp4",
    ]
}
