import HTTPSemantics
import SystemCalls
import UploadStorage

/// Responses to `GET` and `HEAD` for a published file, with conditions, ranges and digests (RFC 9110 sections 13 and
/// 14, RFC 9530).
struct FileResponses {
    private let digests: FileDigests
    private let isAwaited: () -> Bool

    /// - Parameter isAwaited: returns whether the client still waits for the response.
    init(_ digests: FileDigests, isAwaited: @escaping () -> Bool) {
        self.digests = digests
        self.isAwaited = isAwaited
    }

    func response(_ content: FileContent, fields: Fields, to request: TargetRequest) -> Response {
        let file = content.file
        let now = HTTPDate(secondsSinceEpoch: SystemClock.realtimeSeconds())
        let attributes = file.attributes
        // The modification time of a file can be in the future, but Last-Modified must not be.
        let modified = min(HTTPDate(secondsSinceEpoch: attributes.modifiedSeconds), now)
        let validators = Validators(entityTag: attributes.entityTag, lastModified: modified, date: now)
        var common = Fields()
        common.reserveCapacity(16)
        common.append("ETag", attributes.entityTag.serialized)
        common.append("Last-Modified", modified.serialized)
        common.append("Accept-Ranges", "bytes")
        for field in fields { common.append(field.name, field.value) }
        let preconditions = Preconditions(fields: request.fields, now: now)
        switch preconditions.evaluate(method: request.method, current: validators) {
        case .failed: return Response(ProblemDetails.preconditionFailed)
        case .notModified:
            common.remove("Content-Type")
            // Content-Length must be that of a 200 response (RFC 9110 section 8.6).
            return Response(status: 304, fields: common, content: .file(file))
        case .proceed: break
        }
        if content.canRedirect, request.method == .get,
            // The entity tag of the other server differs from this one.
            !request.fields.contains("If-Range") || !preconditions.rangeApplies(current: validators),
            let url = redirection(to: file, fields, request)
        {
            return Response(status: 307, fields: ["Location": url, "Cache-Control": "no-store"])
        }
        if let algorithm = DigestPreferences(fieldLines: request.fields.values("Want-Repr-Digest"))?.preferred,
            let value = digests.value(of: file, algorithm, while: isAwaited)
        {
            common.append("Repr-Digest", DigestField(values: [(algorithm, value)]).serialized)
        }
        let size = attributes.size
        let complete = Response(status: 200, fields: common, content: .file(file))
        guard request.method == .get, request.fields.contains("Range"), preconditions.rangeApplies(current: validators),
            let ranges = ByteRangeSet(fieldLines: request.fields.values("Range"))
        else { return complete }
        switch ranges.resolve(size: size) {
        case .complete: return complete
        case .unsatisfiable: return unsatisfiable(attributes)
        case .satisfiable(let ranges):
            return partial(file, ranges, common) ?? complete
        }
    }

    /// The buffer of a connection has no room for the head with a much longer URL. See
    /// `MicroHTTPDaemon.Options.memoryForOwnHeads`.
    static let maxRedirection = 16 << 10

    /// - Returns: a URL at which the client gets the file; nil if this server has to send it.
    private func redirection(to file: PublishedFile, _ fields: Fields, _ request: TargetRequest) -> String? {
        var signed = Fields()
        for name in FileFields.representation { if let value = fields[name] { signed.append(name, value) } }
        // The path of the URL does not contain the name.
        let disposition = ContentDisposition(type: "inline", filename: request.target.segments.last ?? "")
        signed.append("Content-Disposition", fields["Content-Disposition"] ?? disposition.serialized)
        do throws(StoreError) {
            return try file.downloadURL(with: signed).flatMap { $0.utf8.count <= Self.maxRedirection ? $0 : nil }
        } catch {
            // If the storage fails, reading the file fails as well, and the server reports the error.
            return nil
        }
    }

    private func unsatisfiable(_ attributes: PublishedFile.Attributes) -> Response {
        let size = attributes.size
        let problem = ProblemDetails(
            status: 416, detail: "No requested range is within the \(size) bytes of the file.",
            code: "range-not-satisfiable")
        return Response(
            problem,
            fields: [
                "Content-Range": ContentRange(unsatisfiedSize: size).serialized,
                "ETag": attributes.entityTag.serialized,
            ])
    }

    private func partial(_ file: PublishedFile, _ ranges: [Range<Int64>], _ common: Fields) -> Response? {
        let size = file.attributes.size
        var fields = common
        if ranges.count == 1, let range = ranges.first {
            guard let contentRange = ContentRange(range: range, size: size) else { return nil }
            fields.append("Content-Range", contentRange.serialized)
            return Response(status: 206, fields: fields, content: .stream(FileContent(file, [.range(range)])))
        }
        // The content is not searched for the boundary: a file practically never contains the same 128 random bits.
        let boundary = RequestID().description + RequestID().description
        guard
            let parts = MultipartByteRanges(
                boundary: boundary, ranges: ranges, size: size, contentType: common["Content-Type"])
        else { return nil }
        fields.set("Content-Type", parts.contentType)
        return Response(status: 206, fields: fields, content: .stream(FileContent(file, parts.segments)))
    }
}

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
    /// - Parameter shouldShowActiveTypes: whether a file of an active type is shown in a sandbox instead of saved.
    static func served(of file: PublishedFile, named name: String, shouldShowActiveTypes: Bool) -> Fields {
        var fields = file.fields
        fields.reserveCapacity(8)
        if !fields.contains("Content-Type") {
            let suffix = name.utf8.split(separator: UInt8(ascii: ".")).last.map { Substring($0).lowercased() } ?? ""
            fields.append("Content-Type", types[suffix] ?? "application/octet-stream")
        }
        // An uploaded file must not run as a page of this origin. Every type gets the sandbox, in case a browser
        // guesses another type.
        if !shouldShowActiveTypes, !InertTypes.contain(fields["Content-Type"] ?? "") {
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

extension FilesHandler {
    /// The content of the response for a file.
    func content(of file: PublishedFile, _ fields: Fields) -> Response.Content {
        // Without the fields of this server a browser would run a file of an active type.
        let isSafe = fields.contains("Content-Disposition") || InertTypes.contain(fields["Content-Type"] ?? "")
        let content = FileContent(
            file, [.range(0..<file.attributes.size)], canRedirect: shouldRedirectDownloads && isSafe)
        return .stream(content)
    }
}

extension Response.Content {
    /// The bytes of a published file. If ``TargetHandler/respond(to:)`` returns this content with status 200, the
    /// server evaluates conditions and ranges.
    public static func file(_ file: PublishedFile) -> Response.Content {
        .stream(FileContent(file, [.range(0..<file.attributes.size)]))
    }
}

/// Bytes of a published file, with other bytes between them for `multipart/byteranges`.
final class FileContent: ContentStream {
    /// The file has become shorter.
    private struct UnexpectedEnd: Error, CustomStringConvertible {
        let description = "a published file became shorter while it was sent"
    }

    let file: PublishedFile
    /// Whether the client may be redirected to another server that has the bytes.
    let canRedirect: Bool
    private let segments: [(start: Int64, segment: MultipartByteRanges.Segment)]
    let length: Int64?

    init(_ file: PublishedFile, _ segments: [MultipartByteRanges.Segment], canRedirect: Bool = false) {
        self.file = file
        self.canRedirect = canRedirect
        var start: Int64 = 0
        self.segments = segments.map { segment in
            defer { start += segment.count }
            return (start, segment)
        }
        length = start
    }

    /// The range of the file, if the content is one range without other bytes.
    var range: Range<Int64>? {
        guard segments.count == 1, case .range(let range) = segments[0].segment else { return nil }
        return range
    }

    func read(into buffer: UnsafeMutableRawBufferPointer, at position: Int64) throws -> Int {
        guard let (start, segment) = segments.last(where: { $0.start <= position && $0.segment.count > 0 })
        else { throw UnexpectedEnd() }
        let skipped = position - start
        let count = Int(min(Int64(buffer.count), segment.count - skipped))
        guard count > 0 else { throw UnexpectedEnd() }
        switch segment {
        case .bytes(let bytes):
            buffer.copyBytes(from: bytes[Int(skipped)..<Int(skipped) + count])
            return count
        case .range(let range):
            let part = UnsafeMutableRawBufferPointer(rebasing: buffer[..<count])
            let read = try file.read(into: part, at: range.lowerBound + skipped)
            guard read > 0 else { throw UnexpectedEnd() }
            return read
        }
    }
}
