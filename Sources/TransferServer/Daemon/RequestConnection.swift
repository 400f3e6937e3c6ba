import CMicroHTTPD
import Glibc
import HTTPSemantics
import SystemCalls
import TLS
import UploadStorage

/// The connection of libmicrohttpd during one callback. The handle must not be used after the callback.
struct RequestConnection {
    private let handle: OpaquePointer
    let accepted: AcceptedConnection

    init?(_ handle: OpaquePointer) {
        guard let info = onward_mhd_connection_info(handle, .CONNECTION_INFO_SOCKET_CONTEXT),
            let raw = info.pointee.socket_context
        else { return nil }
        self.handle = handle
        accepted = Unmanaged<AcceptedConnection>.fromOpaque(raw).takeUnretainedValue()
    }

    /// The part of the connection that other threads use.
    var entry: ConnectionEntry { accepted.entry }

    /// The output of the connection, for writes between those of libmicrohttpd.
    var output: ConnectionOutput {
        ConnectionOutput(socket: entry.output, session: session.map(TLSSession.init))
    }

    /// The GnuTLS session; nil without TLS.
    private var session: UnsafeMutableRawPointer? { entry.credentials == nil ? nil : Self.session(of: handle) }

    static func session(of handle: OpaquePointer) -> UnsafeMutableRawPointer? {
        onward_mhd_connection_info(handle, .CONNECTION_INFO_GNUTLS_SESSION)?.pointee.tls_session
    }

    static func descriptor(of handle: OpaquePointer) -> Int32? {
        onward_mhd_connection_info(handle, .CONNECTION_INFO_CONNECTION_FD)?.pointee.connect_fd
    }

    /// The channel for interim responses to a client of `version`; closed for HTTP/1.0 (RFC 9110 section 15.2).
    func interimChannel(version: ProtocolVersion, base: PublicBase) -> InterimChannel {
        guard version >= .http11 else { return InterimChannel(send: nil, base: base) }
        let output = output
        return InterimChannel(
            send: { bytes, timeout, isFollowed in output.send(bytes, timeout: timeout, isFollowed: isFollowed) },
            base: base)
    }

    /// Waits a moment for the remaining bytes of short content; returns whether all content has arrived.
    func receiveShortContent() -> Bool { accepted.receiveShortContent(session) }

    /// Reads the content of the last request, as far as it has arrived.
    func readContent(into buffer: UnsafeMutableRawBufferPointer) -> RequestReader.Content {
        accepted.readContent(into: buffer, session)
    }

    func queue(_ response: OutgoingResponse, status: Status) -> Bool {
        accepted.precedesFile = response.sendsFile
        return MHD_queue_response(handle, UInt32(status.rawValue), response.handle) == .YES
    }
}

/// The head of a request as it was received, and its evaluation. libmicrohttpd receives only the ``substitute``.
struct ReceivedRequest {
    enum Evaluation {
        case accepted(MessageFraming, RequestTarget)
        /// The request is rejected, and nothing after it on the connection is served.
        case refused(FramingRefusal)
    }

    /// The head, which can be incomplete if the request is rejected.
    var head: RequestHead
    let evaluation: Evaluation

    /// Evaluates a complete head.
    init(_ head: RequestHead) {
        self.head = head
        switch (MessageFraming.evaluate(head), RequestTarget(parsing: head.target)) {
        case (.failure(let refusal), _): evaluation = .refused(refusal)
        case (.success, nil): evaluation = .refused(.malformedTarget)
        case (.success(let framing), let target?): evaluation = .accepted(framing, target)
        }
    }

    init(_ head: RequestHead, refused refusal: FramingRefusal) {
        self.head = head
        evaluation = .refused(refusal)
    }

    /// The head that libmicrohttpd receives instead of the original: only what it needs to wait for content and to
    /// format the response.
    var substitute: [UInt8] {
        var head: [UInt8] = []
        head.reserveCapacity(160)
        head += (self.head.method == .head ? "HEAD / " : "POST / ").utf8
        head += (self.head.version < .http11 ? "HTTP/1.0\r\n" : "HTTP/1.1\r\n").utf8
        head += "Host: localhost\r\n".utf8
        switch evaluation {
        case .accepted(.none, _), .accepted(.length(0), _): break
        // libmicrohttpd receives no content, only signals that content has arrived. It expects content of a rejected
        // request, too, so that the server can reject the request and read content that still arrives.
        case .accepted, .refused: head += "Transfer-Encoding: chunked\r\n".utf8
        }
        if hasConnectionOption("close") {
            head += "Connection: close\r\n".utf8
        } else if hasConnectionOption("keep-alive") {
            head += "Connection: keep-alive\r\n".utf8
        }
        head += "\r\n".utf8
        return head
    }

    private func hasConnectionOption(_ name: String) -> Bool {
        guard let options = head.fields["Connection"] else { return false }
        return options.split { $0 == " " || $0 == "\t" || $0 == "," }.contains {
            String($0).equalsIgnoringASCIICase(name)
        }
    }
}

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
    /// Whether the kernel sends a file after the head.
    let sendsFile: Bool

    /// - Parameters:
    ///   - isSecure: whether the connection is encrypted.
    ///   - isHead: whether the request is `HEAD`.
    /// - Returns: `nil` if memory is not available or the content cannot be opened.
    init?(_ response: Response, isSecure: Bool, isHead: Bool, events: ContentEvents) {
        var file: (descriptor: Int32, range: Range<Int64>)?
        // Without TLS the kernel sends a local file, because libmicrohttpd would read it in small blocks.
        if !isSecure, case .stream(let stream) = response.content, let content = stream as? FileContent,
            let range = content.range
        {
            do throws(StoreError) {
                file = try content.file.duplicateForHandover().map { ($0, range) }
            } catch { return nil }
        }
        if let (descriptor, range) = file {
            guard let made = Self.make(descriptor, range) else { return nil }
            handle = made
            sendsFile = !isHead && !range.isEmpty && !response.status.forbidsContent
        } else {
            guard let made = Self.make(response.content, events) else { return nil }
            (handle, sendsFile) = (made, false)
        }
        if isHead, response.content.length == nil {
            // For HEAD libmicrohttpd 0.9.75 would send the last chunk, which the client would read as the start of the
            // next response. In this mode libmicrohttpd uses no chunks, and closes the connection.
            _ = onward_mhd_set_flags(handle, .RF_HTTP_1_0_COMPATIBLE_STRICT)
        }
        for field in response.fields where Fields.isValidName(field.name) && Fields.isValidValue(field.value) {
            _ = field.name.withCString { name in
                field.value.withFieldCString { onward_mhd_add_field(handle, name, $0) }
            }
        }
    }

    deinit { MHD_destroy_response(handle) }

    /// libmicrohttpd closes the descriptor with the response.
    private static func make(_ descriptor: Int32, _ range: Range<Int64>) -> OpaquePointer? {
        MHD_create_response_from_fd_at_offset64(
            UInt64(range.upperBound - range.lowerBound), descriptor, UInt64(range.lowerBound))
    }

    private static func make(_ content: Response.Content, _ events: ContentEvents) -> OpaquePointer? {
        switch content {
        case .bytes(let bytes): return make(bytes)
        case .stream(let stream):
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
