import CMicroHTTPD
import CReceiveFilter
import Glibc
import HTTPSemantics
import SystemCalls
import TLS
import UploadStorage

/// A connection that the server accepted. This object exists from before libmicrohttpd first receives on the connection
/// until the descriptor is closed.
///
/// During this time libmicrohttpd receives through ``RequestReader``: `CReceiveFilter` calls this object in place of
/// recv(2) and `gnutls_record_recv`, and it calls this object in send(2) to find out whether a file follows the head.
/// The server reads the content of requests from this object. Everything except `entry` is used by only one thread at a
/// time: the thread that opens the connection, then the thread of the connection, then the thread that closes it.
final class AcceptedConnection {
    /// The part of the connection that other threads use.
    let entry: ConnectionEntry
    /// The connection of libmicrohttpd, which exists until its descriptor is closed.
    private let handle: OpaquePointer
    private let input: ConnectionInput
    private var reader = RequestReader()
    /// Whether libmicrohttpd next sends a head, and then a file.
    private var isFollowedByFile = false
    /// The exchange whose content is awaited, if it can have a response for the client before all content has arrived.
    var awaiting: (any Exchange)?

    init(_ entry: ConnectionEntry, handle: OpaquePointer, descriptor: Int32) {
        self.entry = entry
        self.handle = handle
        input = ConnectionInput(
            descriptor: descriptor, session: entry.credentials == nil ? nil : Self.session(of: handle))
    }

    /// The object of a connection of libmicrohttpd; `nil` if the connection has none.
    static func object(of handle: OpaquePointer) -> AcceptedConnection? {
        object(at: onward_mhd_connection_info(handle, .CONNECTION_INFO_SOCKET_CONTEXT)?.pointee.socket_context)
    }

    private static func object(at context: UnsafeMutableRawPointer?) -> AcceptedConnection? {
        context.map { Unmanaged<AcceptedConnection>.fromOpaque($0).takeUnretainedValue() }
    }

    /// The GnuTLS session of a connection of libmicrohttpd; `nil` without TLS.
    static func session(of handle: OpaquePointer) -> UnsafeMutableRawPointer? {
        onward_mhd_connection_info(handle, .CONNECTION_INFO_GNUTLS_SESSION)?.pointee.tls_session
    }

    static func descriptor(of handle: OpaquePointer) -> Int32? {
        onward_mhd_connection_info(handle, .CONNECTION_INFO_CONNECTION_FD)?.pointee.connect_fd
    }

    /// Starts to receive through the filter.
    /// - Returns: false if the descriptor number is too large; the connection must then be closed.
    func beginFiltering() -> Bool {
        _ = Self.installation
        return onward_filter_add(input.descriptor, Unmanaged.passUnretained(self).toOpaque(), entry.credentials != nil)
    }

    /// Must be called before the descriptor is closed.
    func endFiltering() { onward_filter_remove(input.descriptor) }

    /// Returns the request whose head libmicrohttpd has received last. Each request is returned only once; `nil` if
    /// there is no new request.
    func nextRequest() -> ReceivedRequest? { reader.nextRequest() }

    /// The maximum number of bytes, and the time in nanoseconds, of ``receiveShortContent()``.
    private static let (shortContent, shortTime) = (256 << 10, Int64(2_000_000))

    /// Receives the remaining content of the last request if it is short and arrives within a moment.
    /// - Returns: whether all content has arrived.
    func receiveShortContent() -> Bool {
        let deadline = SystemClock.monotonicNanoseconds() + Self.shortTime
        return reader.receiveContent(atMost: Self.shortContent, from: input) { [entry] in
            entry.output.awaitInput(until: deadline)
        }
    }

    /// Whether input has arrived that was not read yet.
    var hasInput: Bool { reader.hasInput }

    /// Reads the content of the last request, as far as it has arrived.
    func readContent(into buffer: UnsafeMutableRawBufferPointer) -> RequestReader.Content {
        reader.readContent(into: buffer, from: input)
    }

    /// Stops parsing: input that still arrives is discarded.
    func stopReading() {
        reader.discard()
        endFiltering()
    }

    /// The output of the connection, for writes between those of libmicrohttpd.
    var output: ConnectionOutput {
        ConnectionOutput(socket: entry.output, session: input.session.map(TLSSession.init))
    }

    /// The channel for interim responses to a client of `version`; closed for HTTP/1.0 (RFC 9110 section 15.2).
    func interimChannel(version: ProtocolVersion, base: PublicBase) -> InterimChannel {
        guard version >= .http11 else { return InterimChannel(send: nil, base: base) }
        let output = output
        return InterimChannel(
            send: { bytes, timeout, isFollowed in output.send(bytes, timeout: timeout, isFollowed: isFollowed) },
            base: base)
    }

    func queue(_ response: OutgoingResponse, status: Status) -> Bool {
        isFollowedByFile = response.hasFile
        return MHD_queue_response(handle, UInt32(status.rawValue), response.handle) == .YES
    }

    // MARK: - Replacements of the functions that libmicrohttpd calls

    private static let installation: Void = onward_filter_install(
        { context, session, buffer, size in
            guard let connection = AcceptedConnection.object(at: context), let buffer else { return 0 }
            let output = UnsafeMutableRawBufferPointer(start: buffer, count: size)
            switch connection.reader.read(into: output, from: connection.input) {
            case .bytes(let count): return count
            case .none where session != nil: return ConnectionInput.tryAgain
            case .none: errno = EAGAIN
            case .end(let code) where session != nil || code == 0: return code
            case .end(let code): errno = Int32(code)
            }
            return -1
        },
        { context in
            guard let connection = AcceptedConnection.object(at: context) else { return false }
            return connection.hasInput || connection.awaiting?.hasEarlyResponse == true
        },
        { context in AcceptedConnection.object(at: context)?.awaiting?.checkInterval ?? -1 },
        { context in
            guard let connection = AcceptedConnection.object(at: context) else { return false }
            defer { connection.isFollowedByFile = false }
            return connection.isFollowedByFile
        })
}

/// The input of a connection, which libmicrohttpd does not receive itself.
private struct ConnectionInput: ByteSource {
    /// The values of GNUTLS_E_AGAIN, GNUTLS_E_INTERRUPTED and GNUTLS_E_REHANDSHAKE.
    static let (tryAgain, interrupted, renegotiation) = (-28, -52, -37)

    let descriptor: Int32
    /// The GnuTLS session; `nil` without TLS.
    let session: UnsafeMutableRawPointer?
    var isRecordwise: Bool { session != nil }

    func receive(into buffer: UnsafeMutableRawBufferPointer) -> RequestReader.Arrival {
        if let session { receive(into: buffer, from: session) } else { receiveUnencrypted(into: buffer) }
    }

    private func receiveUnencrypted(into buffer: UnsafeMutableRawBufferPointer) -> RequestReader.Arrival {
        while true {
            let count = onward_system_recv(descriptor, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT))
            if count > 0 { return .bytes(count) }
            if count == 0 { return .end(0) }
            switch errno {
            case EINTR: continue
            case EAGAIN: return .none
            default: return .end(Int(errno))
            }
        }
    }

    private func receive(
        into buffer: UnsafeMutableRawBufferPointer, from session: UnsafeMutableRawPointer
    ) -> RequestReader.Arrival {
        while true {
            let count = onward_system_record_recv(session, buffer.baseAddress, buffer.count)
            if count > 0 { return .bytes(count) }
            switch count {
            case Self.interrupted: continue
            case Self.tryAgain: return .none
            case Self.renegotiation:
                TLSSession(session).refuseRenegotiation()
                return .end(count)
            default: return .end(count)
            }
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
    let hasFile: Bool

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
                file = try content.file.duplicateForSending().map { ($0, range) }
            } catch { return nil }
        }
        if let (descriptor, range) = file {
            guard let made = Self.make(descriptor, range) else { return nil }
            handle = made
            hasFile = !isHead && !range.isEmpty && !response.status.isContentForbidden
        } else {
            guard let made = Self.make(response.content, events) else { return nil }
            (handle, hasFile) = (made, false)
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
