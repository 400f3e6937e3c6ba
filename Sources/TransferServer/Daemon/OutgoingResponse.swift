import CMicroHTTPD
import HTTPSemantics
import SystemCalls
import UploadStorage

/// Owns a response of libmicrohttpd, and destroys it in `deinit`.
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
    init?(_ response: Response, isSecure: Bool, isHead: Bool, events: ContentEvents) {
        guard let made = Self.make(response.content, isSecure: isSecure, events) else { return nil }
        handle = made
        if isHead, response.content.length == nil {
            // For HEAD libmicrohttpd 0.9.75 would send the last chunk, which the client would read as the start of the
            // next response. In this mode libmicrohttpd uses no chunks, and closes the connection.
            _ = onward_mhd_set_flags(handle, .RF_HTTP_1_0_COMPATIBLE_STRICT)
        }
        for field in response.fields where Fields.isValidName(field.name) && Fields.isValidValue(field.value) {
            // libmicrohttpd rejects empty values, which have no meaning in any field that the server sends.
            _ = field.name.withCString { name in
                field.value.withCString { MHD_add_response_header(handle, name, $0) }
            }
        }
    }

    deinit { MHD_destroy_response(handle) }

    private static func make(
        _ content: Response.Content, isSecure: Bool, _ events: ContentEvents
    ) -> OpaquePointer? {
        switch content {
        case .bytes(let bytes): return make(bytes)
        case .stream(let stream):
            // Without TLS the kernel sends the file, because libmicrohttpd would read it in small blocks.
            if !isSecure, let content = stream as? FileContent, let range = content.range {
                // libmicrohttpd closes the descriptor with the response.
                guard let descriptor = try? content.file.duplicateForHandover() else { return nil }
                return MHD_create_response_from_fd_at_offset64(
                    UInt64(range.upperBound - range.lowerBound), descriptor, UInt64(range.lowerBound))
            }
            let feed = ContentFeed(events, stream)
            guard let length = stream.length else {
                return make(feed, count: ContentFeed.unknownLength, block: 64 << 10)
            }
            return make(feed, count: UInt64(length), block: 256 << 10)
        }
    }

    private static func make(_ bytes: [UInt8]) -> OpaquePointer? {
        bytes.withUnsafeBytes { buffer in
            MHD_create_response_from_buffer(
                buffer.count, UnsafeMutableRawPointer(mutating: buffer.baseAddress), .RESPMEM_MUST_COPY)
        }
    }

    private static func make(_ feed: ContentFeed, count: UInt64, block: Int) -> OpaquePointer? {
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
    /// The value of MHD_CONTENT_READER_END_OF_STREAM.
    static let end = -1
    /// The value of MHD_CONTENT_READER_END_WITH_ERROR.
    static let failure = -2
    /// The value of MHD_SIZE_UNKNOWN.
    static let unknownLength = UInt64.max

    private let events: OutgoingResponse.ContentEvents
    private let stream: any ContentStream

    init(_ events: OutgoingResponse.ContentEvents, _ stream: any ContentStream) {
        self.events = events
        self.stream = stream
    }

    func read(at position: Int64, into buffer: UnsafeMutableRawBufferPointer) -> Int {
        do {
            let count = try stream.read(into: buffer, at: position)
            guard stream.length == nil else {
                // Without an error libmicrohttpd would request the same bytes again without end.
                if count == 0 { throw Response.LoadingError.incomplete }
                return count
            }
            events.streamed(count)
            return count > 0 ? count : Self.end
        } catch {
            events.failed(error)
            return Self.failure
        }
    }
}
