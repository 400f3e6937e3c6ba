import HTTPSemantics

/// Media types that a browser shows without executing anything: text, bitmap images, audio, video, fonts, data and
/// archives. Every other type is active: HTML, SVG and other XML, scripts, PDF, Flash, `multipart/…` and unknown types.
enum InertTypes {
    /// Whether a value of Content-Type is an inert type. A malformed value is not, because browsers may guess any type
    /// for it.
    static func contain(_ contentType: String) -> Bool {
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
