import CMicroHTTPD
import HTTPSemantics
import SystemCalls
import UploadStorage

/// A response of libmicrohttpd, released when this object goes.
final class OutgoingResponse {
    let handle: OpaquePointer

    /// - Parameter isSecure: whether it goes out encrypted.
    /// - Returns: `nil` where libmicrohttpd has no memory, or the content cannot be opened.
    init?(_ reply: Reply, isSecure: Bool) {
        guard let made = Self.make(reply.content, isSecure: isSecure) else { return nil }
        handle = made
        for field in reply.fields where Fields.isValidName(field.name) && Fields.isValidValue(field.value) {
            // Empty values are refused by libmicrohttpd, and mean nothing in any field that we send.
            MHD_add_response_header(handle, field.name, field.value)
        }
    }

    deinit { MHD_destroy_response(handle) }

    private static func make(_ content: Reply.Content, isSecure: Bool) -> OpaquePointer? {
        switch content {
        case .bytes(let bytes):
            return bytes.withUnsafeBytes { buffer in
                MHD_create_response_from_buffer(
                    buffer.count, UnsafeMutableRawPointer(mutating: buffer.baseAddress), .RESPMEM_MUST_COPY)
            }
        case .file(let file, let range) where isSecure:
            // The kernel cannot encrypt it, and libmicrohttpd reads files in small blocks.
            return make(
                ContentReader(file: file, segments: [.range(range)]), count: range.upperBound - range.lowerBound)
        case .file(let file, let range):
            // The kernel sends it from the file; libmicrohttpd closes the descriptor with the response.
            guard let descriptor = try? file.duplicateDescriptor()?.duplicateForHandover() else { return nil }
            return MHD_create_response_from_fd_at_offset64(
                UInt64(range.upperBound - range.lowerBound), descriptor, UInt64(range.lowerBound))
        case .parts(let file, let parts):
            return make(ContentReader(file: file, segments: parts.segments), count: parts.contentLength)
        }
    }

    private static func make(_ reader: ContentReader, count: Int64) -> OpaquePointer? {
        MHD_create_response_from_callback(
            UInt64(count), 256 << 10,
            { context, position, buffer, capacity in
                guard let context, let buffer else { return ContentReader.failure }
                let reader = Unmanaged<ContentReader>.fromOpaque(context).takeUnretainedValue()
                return reader.read(
                    at: Int64(position), into: UnsafeMutableRawBufferPointer(start: buffer, count: capacity))
            },
            Unmanaged.passRetained(reader).toOpaque(),
            { context in if let context { Unmanaged<ContentReader>.fromOpaque(context).release() } })
    }
}

/// Reads the content of a response that is made of parts of a file at any position.
private final class ContentReader {
    /// MHD_CONTENT_READER_END_WITH_ERROR
    static let failure = -2

    private let file: PublishedFile
    private let segments: [(start: Int64, segment: MultipartByteRanges.Segment)]

    init(file: PublishedFile, segments: [MultipartByteRanges.Segment]) {
        self.file = file
        var start: Int64 = 0
        self.segments = segments.map { segment in
            defer { start += segment.count }
            return (start, segment)
        }
    }

    func read(at position: Int64, into buffer: UnsafeMutableRawBufferPointer) -> Int {
        guard let (start, segment) = segments.last(where: { $0.start <= position && $0.segment.count > 0 })
        else { return Self.failure }
        let skipped = position - start
        let count = Int(min(Int64(buffer.count), segment.count - skipped))
        guard count > 0 else { return Self.failure }
        switch segment {
        case .bytes(let bytes):
            buffer.copyBytes(from: bytes[Int(skipped)..<Int(skipped) + count])
            return count
        case .range(let range):
            let part = UnsafeMutableRawBufferPointer(rebasing: buffer[..<count])
            guard let read = try? file.read(into: part, at: range.lowerBound + skipped), read > 0
            else { return Self.failure }
            return read
        }
    }
}
