import CCurl
import Glibc
import HTTPSemantics
import SystemCalls

/// An easy handle of libcurl: one request. Used on one thread at a time.
final class EasyHandle {
    typealias ID = UnsafeMutableRawPointer

    /// The calls that libcurl makes during a transfer, on its thread.
    protocol Delegate: AnyObject {
        /// Called when the connection is ready, before the request is sent.
        /// - Parameter localPort: the local port of the connection.
        /// - Returns: whether the request may be sent.
        func willSend(localPort: Int32) -> Bool
        /// - Returns: the number of bytes that were written to `buffer`; 0 at the end of the content;
        ///   `CURL_READFUNC_PAUSE` or `CURL_READFUNC_ABORT`.
        func read(into buffer: UnsafeMutableRawBufferPointer) -> Int
        /// Called when libcurl needs the content again from its beginning.
        /// - Returns: whether that is possible.
        func rewind() -> Bool
        /// - Returns: whether to continue.
        func header(_ line: UnsafeRawBufferPointer) -> Bool
        func write(_ bytes: UnsafeRawBufferPointer) -> ContentAcceptance
    }

    let pointer: ID
    /// The receiver of events; `nil` unless the handle belongs to a multi handle.
    var delegate: (any Delegate)?
    private var lines: HeaderLines?
    private let message = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))

    /// - Returns: `nil` if libcurl has not enough memory.
    init?() {
        message.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        guard let pointer = curl_easy_init() else {
            message.deallocate()
            return nil
        }
        self.pointer = pointer
        onward_easy_set_pointer(pointer, CURLOPT_ERRORBUFFER, message)
        setCallbacks()
    }

    deinit {
        curl_easy_cleanup(pointer)
        lines?.deallocate()
        message.deallocate()
    }

    // MARK: Before the transfer

    func set(_ option: CURLoption, _ value: Int) { onward_easy_set_long(pointer, option, value) }

    func set(_ option: CURLoption, offset value: Int64) { onward_easy_set_offset(pointer, option, value) }

    /// libcurl copies the text.
    func set(_ option: CURLoption, _ value: String) { onward_easy_set_string(pointer, option, value) }

    /// libcurl copies the path.
    func set(_ option: CURLoption, _ value: FilePath) {
        _ = value.withCString { onward_easy_set_string(pointer, option, $0) }
    }

    /// Sends the fields of the request in addition to libcurl's own.
    func setFields(of request: TransportRequest) {
        lines?.deallocate()
        let lines = HeaderLines(request)
        self.lines = lines
        onward_easy_set_list(pointer, CURLOPT_HTTPHEADER, lines.list)
    }

    private func setCallbacks() {
        let me = Unmanaged.passUnretained(self).toOpaque()
        onward_easy_set_pointer(pointer, CURLOPT_READDATA, me)
        onward_easy_set_data_function(pointer, CURLOPT_READFUNCTION) { bytes, size, count, me in
            guard let bytes, let me else { return Int(CURL_READFUNC_ABORT) }
            let buffer = UnsafeMutableRawBufferPointer(start: bytes, count: size * count)
            return EasyHandle.at(me).delegate?.read(into: buffer) ?? Int(CURL_READFUNC_ABORT)
        }
        onward_easy_set_pointer(pointer, CURLOPT_SEEKDATA, me)
        onward_easy_set_seek_function(pointer) { me, offset, origin in
            guard let me, offset == 0, origin == SEEK_SET, EasyHandle.at(me).delegate?.rewind() == true else {
                return CURL_SEEKFUNC_FAIL
            }
            return CURL_SEEKFUNC_OK
        }
        onward_easy_set_pointer(pointer, CURLOPT_HEADERDATA, me)
        onward_easy_set_data_function(pointer, CURLOPT_HEADERFUNCTION) { bytes, size, count, me in
            guard let bytes, let me else { return 0 }
            let line = UnsafeRawBufferPointer(start: bytes, count: size * count)
            return EasyHandle.at(me).delegate?.header(line) == true ? line.count : 0
        }
        onward_easy_set_pointer(pointer, CURLOPT_WRITEDATA, me)
        onward_easy_set_data_function(pointer, CURLOPT_WRITEFUNCTION) { bytes, size, count, me in
            guard let bytes, let me else { return 0 }
            let content = UnsafeRawBufferPointer(start: bytes, count: size * count)
            switch EasyHandle.at(me).delegate?.write(content) ?? .refused {
            case .accepted: return content.count
            case .held: return Int(CURL_WRITEFUNC_PAUSE)
            // Any other number than the number of bytes is an error.
            case .refused: return content.count + 1
            }
        }
        onward_easy_set_pointer(pointer, CURLOPT_PREREQDATA, me)
        onward_easy_set_prereq_function(pointer) { me, _, _, _, port in
            guard let me, EasyHandle.at(me).delegate?.willSend(localPort: port) != false else {
                return CURL_PREREQFUNC_ABORT
            }
            return CURL_PREREQFUNC_OK
        }
    }

    /// Opens and closes sockets through `sockets`, which outlives every connection.
    func setSockets(_ sockets: ConnectionSockets) {
        let sockets = Unmanaged.passUnretained(sockets).toOpaque()
        onward_easy_set_pointer(pointer, CURLOPT_SOCKOPTDATA, sockets)
        onward_easy_set_pointer(pointer, CURLOPT_CLOSESOCKETDATA, sockets)
        onward_easy_set_socket_functions(
            pointer,
            { sockets, socket, _ in
                if let sockets { EasyHandle.sockets(at: sockets).opened(socket) }
                return CURL_SOCKOPT_OK
            },
            { sockets, socket in
                if let sockets { EasyHandle.sockets(at: sockets).close(socket) }
                return 0
            })
    }

    private static func sockets(at pointer: UnsafeMutableRawPointer) -> ConnectionSockets {
        Unmanaged<ConnectionSockets>.fromOpaque(pointer).takeUnretainedValue()
    }

    private static func at(_ pointer: UnsafeMutableRawPointer) -> EasyHandle {
        Unmanaged<EasyHandle>.fromOpaque(pointer).takeUnretainedValue()
    }

    // MARK: A connection without a transfer

    /// The outcome of ``receive(into:)`` and ``send(_:)``.
    enum Outcome {
        /// The number of bytes, at least one.
        case bytes(Int)
        /// Nothing can be received or sent without waiting.
        case none
        /// The peer has ended its output.
        case end
        case failed(CURLcode)
    }

    /// Prepares a transfer that ends when the connection is made. The connection stays open until the handle is removed.
    func connectOnly(bufferSize: Int) {
        set(CURLOPT_CONNECT_ONLY, 1)
        // libcurl receives at most this number of bytes at once.
        set(CURLOPT_BUFFERSIZE, bufferSize)
        set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
    }

    /// The socket of the connection; `nil` if there is none.
    var activeSocket: Int32? {
        let socket = onward_easy_socket(pointer)
        return socket >= 0 ? socket : nil
    }

    func receive(into buffer: UnsafeMutableRawBufferPointer) -> Outcome {
        var count = 0
        let code = curl_easy_recv(pointer, buffer.baseAddress, buffer.count, &count)
        return code == CURLE_OK && count == 0 ? .end : outcome(code, count)
    }

    func send(_ bytes: UnsafeRawBufferPointer) -> Outcome {
        var count = 0
        let code = curl_easy_send(pointer, bytes.baseAddress, bytes.count, &count)
        return outcome(code, count)
    }

    private func outcome(_ code: CURLcode, _ count: Int) -> Outcome {
        switch code {
        case CURLE_OK where count > 0: .bytes(count)
        case CURLE_OK, CURLE_AGAIN: .none
        default: .failed(code)
        }
    }

    // MARK: During the transfer

    /// The number of bytes of the request's content, with the framing of chunks, that were passed to the kernel.
    var bytesSent: Int64 { onward_easy_offset(pointer, CURLINFO_SIZE_UPLOAD_T) }

    /// Whether the response came over HTTP/2.
    var isHTTP2: Bool { onward_easy_long(pointer, CURLINFO_HTTP_VERSION) == Int(CURL_HTTP_VERSION_2_0) }

    /// Whether the request was sent on the connection of an earlier request.
    var isConnectionReused: Bool { onward_easy_long(pointer, CURLINFO_NUM_CONNECTS) == 0 }

    /// A time since the start that libcurl has measured in microseconds; `nil` if there is none.
    func time(_ info: CURLINFO) -> Duration? {
        let time = onward_easy_offset(pointer, info)
        return time > 0 ? .microseconds(time) : nil
    }

    /// Adds the times that libcurl has measured, the addresses of the connection and the sizes of the heads to metrics.
    func describeConnection(in metrics: inout RequestMetrics, to uri: String) {
        metrics.isConnectionReused = isConnectionReused
        metrics.isProxied = proxy(for: uri, isTunnel: connectStatus != 0) != nil
        metrics.remoteAddress = onward_easy_text(pointer, CURLINFO_PRIMARY_IP).map { String(cString: $0) }
        metrics.remotePort = Int(onward_easy_long(pointer, CURLINFO_PRIMARY_PORT))
        metrics.localAddress = onward_easy_text(pointer, CURLINFO_LOCAL_IP).map { String(cString: $0) }
        metrics.localPort = Int(onward_easy_long(pointer, CURLINFO_LOCAL_PORT))
        metrics.headSent = Int64(onward_easy_long(pointer, CURLINFO_REQUEST_SIZE))
        metrics.headReceived = Int64(onward_easy_long(pointer, CURLINFO_HEADER_SIZE))
    }

    /// The status of a proxy's response to CONNECT; 0 if there is none.
    var connectStatus: Int { onward_easy_long(pointer, CURLINFO_HTTP_CONNECTCODE) }

    /// The host and port of the proxy to which the connection was made; `nil` if there is none. If the port of the
    /// connection is not that of the URI, the peer is assumed to be a proxy.
    /// - Parameter isTunnel: whether the peer is known to be a proxy.
    func proxy(for uri: String, isTunnel: Bool = false) -> String? {
        let port = onward_easy_long(pointer, CURLINFO_PRIMARY_PORT)
        guard port != 0, let target = RequestURI.port(of: uri), isTunnel || port != target,
            let host = onward_easy_text(pointer, CURLINFO_PRIMARY_IP).map({ String(cString: $0) }), !host.isEmpty
        else { return nil }
        return (host.contains(":") ? "[\(host)]" : host) + ":\(port)"
    }

    /// The system's error if the last connection could not be made.
    var systemError: Errno? {
        let number = Int32(clamping: onward_easy_long(pointer, CURLINFO_OS_ERRNO))
        return number == 0 || number == EINPROGRESS ? nil : Errno(rawValue: number)
    }

    /// libcurl's message for an error.
    func text(of code: CURLcode) -> String {
        message.pointee == 0 ? String(cString: curl_easy_strerror(code)) : String(cString: message)
    }

    /// Pauses the directions that are `true`, and resumes the others. It must not be called inside a callback.
    func hold(sending: Bool, receiving: Bool) -> CURLcode {
        curl_easy_pause(pointer, (sending ? CURLPAUSE_SEND : 0) | (receiving ? CURLPAUSE_RECV : 0))
    }
}

extension EasyHandle {
    /// Sets the options of libcurl for a request.
    func prepare(_ request: TransportRequest) {
        prepareConnection(request)
        set(CURLOPT_FOLLOWLOCATION, 0)
        set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
        if request.method == .head {
            // With HEAD as a custom method, libcurl would wait for content.
            set(CURLOPT_NOBODY, 1)
        } else {
            set(CURLOPT_CUSTOMREQUEST, request.method.rawValue)
        }
        if let content = request.contentWithHead {
            set(CURLOPT_POSTFIELDSIZE_LARGE, offset: Int64(content.count))
            // libcurl copies the bytes.
            content.withUnsafeBytes { bytes in
                _ = onward_easy_set_pointer(
                    pointer, CURLOPT_COPYPOSTFIELDS, UnsafeMutableRawPointer(mutating: bytes.baseAddress))
            }
            set(CURLOPT_BUFFERSIZE, request.settings.bufferSize)
        } else if request.sentContent != .none {
            set(CURLOPT_UPLOAD, 1)
            set(CURLOPT_INFILESIZE_LARGE, offset: request.sentContent.count ?? -1)
            // libcurl allocates the buffer for each request, so short content gets a small buffer.
            let count = request.sentContent.count.map { Int(clamping: $0) } ?? Self.bufferSize
            set(CURLOPT_UPLOAD_BUFFERSIZE, min(max(count, Self.minUploadBufferSize), Self.bufferSize))
        } else if let rate = request.rateLimit {
            // libcurl handles a full buffer in one step, so the buffer has to be small at a low rate.
            set(CURLOPT_BUFFERSIZE, min(max(Int(clamping: rate / 20), 1 << 10), request.settings.bufferSize))
        } else {
            set(CURLOPT_BUFFERSIZE, request.settings.bufferSize)
        }
        setFields(of: request)
    }

    /// Sets the options of libcurl for a connection.
    func prepareConnection(_ request: TransportRequest) {
        set(CURLOPT_URL, request.uri)
        if let path = request.settings.unixSocket { set(CURLOPT_UNIX_SOCKET_PATH, path) }
        set(CURLOPT_PROTOCOLS_STR, "http,https")
        set(CURLOPT_NOSIGNAL, 1)
        // libcurl resolves host names on its own thread. Without this option the end of a transfer would wait for that
        // thread.
        set(CURLOPT_QUICK_EXIT, 1)
        set(CURLOPT_TCP_KEEPALIVE, 1)
        set(CURLOPT_CONNECTTIMEOUT_MS, Int(clamping: max(request.connectTimeout.nanoseconds / 1_000_000, 1)))
        set(request.settings, isSecure: request.isSecure)
    }

    private static let bufferSize = 512 << 10
    /// The minimum that libcurl accepts.
    private static let minUploadBufferSize = 16 << 10

    private func set(_ settings: TransportSettings, isSecure: Bool) {
        if let file = settings.caFile {
            set(CURLOPT_CAINFO, file)
            set(CURLOPT_PROXY_CAINFO, file)
        }
        if let certificate = settings.clientCertificate {
            set(CURLOPT_SSLCERT, FilePath(certificate.certificateFile))
            set(CURLOPT_SSLKEY, FilePath(certificate.keyFile))
            // Without a password OpenSSL would prompt for one on the terminal, on the engine's thread.
            set(CURLOPT_KEYPASSWD, certificate.password ?? "")
        }
        if let proxy = settings.proxy { set(CURLOPT_PROXY, proxy) }
        switch settings.internetProtocol {
        case .version4: set(CURLOPT_IPRESOLVE, Int(CURL_IPRESOLVE_V4))
        case .version6: set(CURLOPT_IPRESOLVE, Int(CURL_IPRESOLVE_V6))
        case nil: break
        }
        let version =
            switch settings.httpVersion {
            case .automatic: Self.isFaultlessInHTTP2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1
            case .http1: CURL_HTTP_VERSION_1_1
            case .http2: isSecure ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE
            }
        set(CURLOPT_HTTP_VERSION, Int(version))
        if version == CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE {
            set(CURLOPT_FRESH_CONNECT, 1)
            set(CURLOPT_FORBID_REUSE, 1)
        }
    }

    /// Before libcurl 8.7, an upload in HTTP/2 could stall after a pause (curl/curl#10433, #10988). Downloads do not
    /// use HTTP/2 with these versions either, because an upload could use the connection of a download.
    private static let isFaultlessInHTTP2 =
        (curl_version_info(CURLVERSION_FIRST)?.pointee.version_num ?? 0) >= 0x08_07_00

    /// Closes the connection when this transfer ends.
    func forbidReuse() { set(CURLOPT_FORBID_REUSE, 1) }
}
