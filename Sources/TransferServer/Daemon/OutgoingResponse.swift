import CMicroHTTPD
import HTTPSemantics
import SystemCalls
import UploadStorage

/// A response of libmicrohttpd, which this object releases.
final class OutgoingResponse {
    /// Callbacks while content is sent, on the thread of the connection.
    struct ContentEvents {
        /// Called with the number of bytes that were produced, if the length of the content is unknown.
        let streamed: (Int) -> Void
        /// Called if content cannot be read or produced. The response is then incomplete.
        let failed: (any Error) -> Void
    }

    let handle: OpaquePointer

    /// - Parameters:
    ///   - isSecure: whether the connection is encrypted.
    ///   - isHead: whether the request is `HEAD`.
    /// - Returns: `nil` if memory is not available or the content cannot be opened.
    init?(_ reply: Reply, isSecure: Bool, isHead: Bool, events: ContentEvents) {
        guard let made = Self.make(reply.content, isSecure: isSecure, events) else { return nil }
        handle = made
        if isHead, case .stream = reply.content {
            // For HEAD libmicrohttpd 0.9.75 would send the last chunk, which the client would read as the start of the
            // next response. In this mode it uses no chunks, and closes the connection.
            _ = onward_mhd_set_flags(handle, .RF_HTTP_1_0_COMPATIBLE_STRICT)
        }
        for field in reply.fields where Fields.isValidName(field.name) && Fields.isValidValue(field.value) {
            // libmicrohttpd rejects empty values, which have no meaning in any field that the server sends.
            MHD_add_response_header(handle, field.name, field.value)
        }
    }

    deinit { MHD_destroy_response(handle) }

    private static func make(_ content: Reply.Content, isSecure: Bool, _ events: ContentEvents) -> OpaquePointer? {
        switch content {
        case .bytes(let bytes):
            return bytes.withUnsafeBytes { buffer in
                MHD_create_response_from_buffer(
                    buffer.count, UnsafeMutableRawPointer(mutating: buffer.baseAddress), .RESPMEM_MUST_COPY)
            }
        case .file(let file, let range) where isSecure:
            // The kernel cannot encrypt the file, and libmicrohttpd reads files in small blocks.
            let reader = SegmentReader(file: file, segments: [.range(range)])
            return make(ContentFeed(events, reader.read), count: UInt64(range.upperBound - range.lowerBound))
        case .file(let file, let range):
            // The kernel sends the content from the file. libmicrohttpd closes the descriptor with the response.
            guard let descriptor = try? file.duplicateDescriptor()?.duplicateForHandover() else { return nil }
            return MHD_create_response_from_fd_at_offset64(
                UInt64(range.upperBound - range.lowerBound), descriptor, UInt64(range.lowerBound))
        case .parts(let file, let parts):
            let reader = SegmentReader(file: file, segments: parts.segments)
            return make(ContentFeed(events, reader.read), count: UInt64(parts.contentLength))
        case .stream(let content):
            let feed = ContentFeed(events, isStreamed: true) { _, buffer in try content.read(into: buffer) }
            return make(feed, count: ContentFeed.unknownLength, block: 64 << 10)
        }
    }

    private static func make(_ feed: ContentFeed, count: UInt64, block: Int = 256 << 10) -> OpaquePointer? {
        MHD_create_response_from_callback(
            count, block,
            { context, position, buffer, capacity in
                guard let context, let buffer else { return ContentFeed.failure }
                let feed = Unmanaged<ContentFeed>.fromOpaque(context).takeUnretainedValue()
                return feed.read(
                    at: Int64(position), into: UnsafeMutableRawBufferPointer(start: buffer, count: capacity))
            },
            Unmanaged.passRetained(feed).toOpaque(),
            { context in if let context { Unmanaged<ContentFeed>.fromOpaque(context).release() } })
    }
}

/// Provides the content of a response when libmicrohttpd requests it. Released with the response.
private final class ContentFeed {
    /// MHD_CONTENT_READER_END_OF_STREAM
    static let end = -1
    /// MHD_CONTENT_READER_END_WITH_ERROR
    static let failure = -2
    /// MHD_SIZE_UNKNOWN
    static let unknownLength = UInt64.max

    private let events: OutgoingResponse.ContentEvents
    private let isStreamed: Bool
    private let source: (Int64, UnsafeMutableRawBufferPointer) throws -> Int

    /// - Parameter source: reads the bytes at a position of the content and returns how many there were.
    init(
        _ events: OutgoingResponse.ContentEvents, isStreamed: Bool = false,
        _ source: @escaping (Int64, UnsafeMutableRawBufferPointer) throws -> Int
    ) {
        self.events = events
        self.isStreamed = isStreamed
        self.source = source
    }

    func read(at position: Int64, into buffer: UnsafeMutableRawBufferPointer) -> Int {
        do {
            let count = try source(position, buffer)
            guard isStreamed else { return count }
            events.streamed(count)
            return count > 0 ? count : Self.end
        } catch {
            events.failed(error)
            return Self.failure
        }
    }
}

/// Reads content that is made of parts of a file at any position.
private final class SegmentReader {
    /// The file has become shorter.
    private struct UnexpectedEnd: Error, CustomStringConvertible {
        let description = "a published file became shorter while it was sent"
    }

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

    func read(at position: Int64, into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
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
