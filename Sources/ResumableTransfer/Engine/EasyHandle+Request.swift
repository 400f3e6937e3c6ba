import CCurl
import Glibc
import HTTPSemantics
import SystemCalls

extension EasyHandle {
    /// Sets the options of libcurl for a request.
    func prepare(_ request: TransportRequest) {
        set(CURLOPT_URL, request.message.uri)
        set(CURLOPT_PROTOCOLS_STR, "http,https")
        set(CURLOPT_NOSIGNAL, 1)
        // libcurl resolves host names on its own thread. Without this option the end of a transfer would wait for that
        // thread.
        set(CURLOPT_QUICK_EXIT, 1)
        set(CURLOPT_TCP_KEEPALIVE, 1)
        set(CURLOPT_FOLLOWLOCATION, 0)
        set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
        set(CURLOPT_CONNECTTIMEOUT_MS, Int(clamping: max(request.connectTimeout.nanoseconds / 1_000_000, 1)))
        set(request.settings, isSecure: request.message.uri.prefix(6).lowercased() == "https:")
        if request.message.method == .head {
            // With HEAD as a custom method, libcurl would wait for content.
            set(CURLOPT_NOBODY, 1)
        } else {
            set(CURLOPT_CUSTOMREQUEST, request.message.method.rawValue)
        }
        if request.sentContent != .none {
            set(CURLOPT_UPLOAD, 1)
            set(CURLOPT_INFILESIZE_LARGE, offset: request.sentContent.count ?? -1)
            // libcurl allocates the buffer for each request, so short content gets a small buffer.
            let count = request.sentContent.count.map { Int(clamping: $0) } ?? Self.bufferSize
            set(CURLOPT_UPLOAD_BUFFERSIZE, min(max(count, Self.minUploadBufferSize), Self.bufferSize))
        } else if let rate = request.rateLimit {
            // libcurl handles a full buffer in one step, so the buffer has to be small at a low rate.
            set(CURLOPT_BUFFERSIZE, min(max(Int(clamping: rate / 20), 1 << 10), Self.bufferSize))
        } else {
            set(CURLOPT_BUFFERSIZE, Self.bufferSize)
        }
        setFields(request.fieldLines)
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

extension TransportRequest {
    /// The header lines in libcurl's notation.
    fileprivate var fieldLines: [String] {
        // This line removes libcurl's own Expect field: libcurl would wait for a second, and before 8.7 a 104 would not
        // end the wait.
        var lines = ["Expect:"]
        for field in message.fields
        where !["expect", "content-length", "transfer-encoding"].contains(field.name.lowercased()) {
            let value = field.value.drop { $0 == " " || $0 == "\t" }
            // libcurl reads "Name:" as a request to remove its own line.
            lines.append(value.isEmpty ? "\(field.name);" : "\(field.name): \(value)")
        }
        return lines
    }
}
