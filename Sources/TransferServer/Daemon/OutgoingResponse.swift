import CMicroHTTPD
import HTTPSemantics
import SystemCalls
import UploadStorage

/// A response of libmicrohttpd, released when this object goes.
final class OutgoingResponse {
    let handle: OpaquePointer

    /// - Returns: `nil` where libmicrohttpd has no memory, or the content cannot be opened.
    init?(_ reply: Reply) {
        guard let made = Self.make(reply.content) else { return nil }
        handle = made
        for field in reply.fields where Fields.isValidName(field.name) && Fields.isValidValue(field.value) {
            // Empty values are refused by libmicrohttpd, and mean nothing in any field that we send.
            MHD_add_response_header(handle, field.name, field.value)
        }
    }

    deinit { MHD_destroy_response(handle) }

    private static func make(_ content: Reply.Content) -> OpaquePointer? {
        switch content {
        case .bytes(let bytes):
            return bytes.withUnsafeBytes { buffer in
                MHD_create_response_from_buffer(
                    buffer.count, UnsafeMutableRawPointer(mutating: buffer.baseAddress), .RESPMEM_MUST_COPY)
            }
        case .file(let file, let range):
            // The kernel sends it from the file; libmicrohttpd closes the descriptor with the response.
            guard let descriptor = try? file.duplicateDescriptor()?.duplicateForHandover() else { return nil }
            return MHD_create_response_from_fd_at_offset64(
                UInt64(range.upperBound - range.lowerBound), descriptor, UInt64(range.lowerBound))
        case .parts(let file, let parts):
            let reader = Unmanaged.passRetained(PartsReader(file: file, parts: parts))
            return MHD_create_response_from_callback(
                UInt64(parts.contentLength), 256 << 10,
                { context, position, buffer, capacity in
                    guard let context, let buffer else { return PartsReader.failure }
                    let reader = Unmanaged<PartsReader>.fromOpaque(context).takeUnretainedValue()
                    return reader.read(
                        at: Int64(position), into: UnsafeMutableRawBufferPointer(start: buffer, count: capacity))
                },
                reader.toOpaque(),
                { context in if let context { Unmanaged<PartsReader>.fromOpaque(context).release() } })
        }
    }
}

/// Reads the content of a `multipart/byteranges` response at any position.
private final class PartsReader {
    /// MHD_CONTENT_READER_END_WITH_ERROR
    static let failure = -2

    private let file: PublishedFile
    private let segments: [(start: Int64, segment: MultipartByteRanges.Segment)]

    init(file: PublishedFile, parts: MultipartByteRanges) {
        self.file = file
        var start: Int64 = 0
        segments = parts.segments.map { segment in
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
