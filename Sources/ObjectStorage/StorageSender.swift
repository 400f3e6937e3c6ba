import HTTPSemantics
import HTTPTransport
import SystemCalls

/// Signs and sends requests to one bucket, and repeats them after temporary errors.
struct StorageSender: Sendable {
    private let uri: ObjectStorageURI
    private let credentials: ObjectCredentials
    private let limits: S3Client.Limits
    private let settings: TransportSettings
    private let transport = BlockingTransport()
    private let clock: @Sendable () -> Int64
    private let pause: @Sendable (Int64) -> Void
    /// The number of requests that were repeated.
    let repetitions = Monitor(0)

    /// The maximum size of a document. A list of 1000 keys with 1024 escaped bytes each is smaller.
    private static let maxDocument = 8 << 20

    init(
        _ uri: ObjectStorageURI, _ credentials: ObjectCredentials, _ limits: S3Client.Limits,
        clock: @escaping @Sendable () -> Int64, pause: @escaping @Sendable (Int64) -> Void
    ) {
        self.uri = uri
        self.credentials = credentials
        self.limits = limits
        self.clock = clock
        self.pause = pause
        // A proxy of the environment can be used through a tunnel only: the request target is sent as it is signed.
        var settings = TransportSettings(
            caFile: uri.caFile.map { FilePath($0) }, proxy: uri.endpoint.scheme == "https" ? nil : "",
            httpVersion: .http1, connectTimeout: limits.connect)
        settings.bufferSize = 256 << 10
        self.settings = settings
    }

    /// How one attempt has ended.
    private enum Attempt {
        case response(StorageResponse)
        /// The reason. A repetition can succeed if `isTemporary` is true.
        case failure(String, isTemporary: Bool)
    }

    /// Sends a request until there is a response that is not a temporary error.
    /// - Parameters:
    ///   - buffer: receives the bytes of the range of the request.
    ///   - deadline: the end of the operation, in monotonic nanoseconds, if it is earlier than the end of
    ///     ``S3Client/Limits/total``.
    func send(
        _ request: StorageRequest, into buffer: UnsafeMutableRawBufferPointer? = nil, until deadline: Int64 = .max
    ) throws(ObjectError) -> StorageResponse {
        let deadline = min(deadline, SystemClock.deadline(in: limits.total))
        let lastStart = min(deadline, SystemClock.deadline(in: limits.repetition))
        var attempts = 0
        while true {
            attempts += 1
            let keys = try credentials.keys()
            var reason: String
            var retryAfter: Int64 = 0
            switch attempt(request, keys, into: buffer, until: deadline) {
            case .response(let response):
                guard response.isTemporary else { return response }
                reason = "status \(response.status)" + (response.code.isEmpty ? "" : " \(response.code.prefix(64))")
                retryAfter = response.retryAfter
            case .failure(let failure, let isTemporary):
                reason = failure
                guard isTemporary else { throw .unavailable(reason) }
            }
            let wait = max(retryAfter, Self.backOff(attempts))
            guard SystemClock.monotonicNanoseconds() + wait < lastStart else {
                throw .unavailable(reason + (attempts > 1 ? ", after \(attempts) attempts" : ""))
            }
            pause(wait)
            repetitions.withLock { $0 += 1 }
        }
    }

    /// The time before the next attempt in nanoseconds: random, so that many clients do not repeat
    /// their requests at the same time.
    private static func backOff(_ attempts: Int) -> Int64 {
        let maxPause = min(Int64(100_000_000) << min(attempts - 1, 6), 5_000_000_000)
        return .random(in: maxPause / 2...maxPause)
    }

    private func attempt(
        _ request: StorageRequest, _ keys: AccessKeys, into buffer: UnsafeMutableRawBufferPointer?,
        until deadline: Int64
    ) -> Attempt {
        let exchange = transport.start(signed(request, keys))
        defer { exchange.cancel() }
        var content: [UInt8] = []
        var objectBytes: ObjectBytes?
        while true {
            let isLate = exchange.result == nil && !exchange.step(until: deadline)
            if let head = exchange.head {
                if let buffer, head.status == .ok || head.status == .partialContent {
                    var bytes = objectBytes ?? ObjectBytes(head, request.range)
                    if let mistake = bytes.receive(from: exchange, into: buffer) {
                        return .failure(mistake, isTemporary: true)
                    }
                    objectBytes = bytes
                    if bytes.isEnough { return .response(response(head, content, bytes.count, keys)) }
                } else {
                    content += exchange.readAll()
                    guard content.count <= Self.maxDocument else {
                        return .failure("the response is too long", isTemporary: false)
                    }
                }
            }
            if let result = exchange.result {
                guard let head = exchange.head, result.failure == nil else { return Self.failed(result.failure) }
                if let bytes = objectBytes {
                    guard bytes.isComplete else {
                        return .failure("the content of an object is incomplete", isTemporary: true)
                    }
                    return .response(response(head, content, bytes.count, keys))
                }
                return .response(response(head, content, 0, keys))
            }
            if isLate { return .failure("no response in time", isTemporary: true) }
        }
    }

    private func response(_ head: ClientResponseHead, _ content: [UInt8], _ count: Int, _ keys: AccessKeys)
        -> StorageResponse
    {
        StorageResponse(
            status: head.status, fields: head.fields, content: content, count: count, receivedAt: clock(),
            secret: keys.sessionToken)
    }

    private static func failed(_ failure: TransportFailure?) -> Attempt {
        let failure = failure ?? .protocolViolation("There is no final response.")
        switch failure {
        // Something is wrong with a certificate or with the settings.
        case .tls, .unsupportedURI, .invalidRequest, .proxy(.unusable):
            return .failure(failure.description, isTemporary: false)
        default: return .failure(failure.description, isTemporary: true)
        }
    }

    private func signed(_ request: StorageRequest, _ keys: AccessKeys) -> TransportRequest {
        let signature = RequestSignature(keys, region: uri.region, at: clock())
        var fields = [("Host", uri.host), ("x-amz-date", signature.time), ("x-amz-content-sha256", request.digest)]
        if let token = keys.sessionToken { fields.append(("x-amz-security-token", token)) }
        fields += request.fields.map { ($0.name, $0.value) }
        let canonical = CanonicalRequest(
            method: request.method, path: request.path, query: request.query,
            fields: fields.map { (name: $0.0, value: $0.1) }, contentDigest: request.digest)
        fields.append(("Authorization", signature.authorization(for: canonical)))
        fields.append(("User-Agent", "onward"))
        let hasContent = request.method == .put || request.method == .post
        let count = Int64(request.content.count)
        var transport = TransportRequest(
            uri: uri.root, method: request.method, fields: Fields(fields),
            content: !hasContent ? .none : count == 0 ? .empty : .range(from: 0, count: count),
            source: count == 0 ? nil : BytesSource(request.content), stallTimeout: limits.stall, settings: settings,
            receive: { _ in .abort })
        transport.target = canonical.target
        return transport
    }
}

/// The bytes of an object that arrive in a response.
private struct ObjectBytes {
    /// The number of bytes that belong to the requested range and were written to the buffer.
    private(set) var count = 0
    /// The number of bytes of the range that the response has according to its head.
    private var expected = 0
    /// The maximum number of bytes that are used.
    private let limit: Int
    /// Whether the response has bytes after those that are used.
    private var hasMore = false
    private var mistake: String?

    init(_ head: ClientResponseHead, _ range: Range<Int64>?) {
        let range = range ?? 0..<0
        limit = range.count
        if head.status == .ok {
            // The storage has ignored the range.
            guard range.lowerBound == 0, let length = head.fields["Content-Length"].flatMap({ Int($0) }) else {
                mistake = "the storage does not support ranges"
                return
            }
            expected = min(length, limit)
            hasMore = length > limit
            return
        }
        guard let (present, size) = Self.contentRange(head.fields["Content-Range"] ?? "") else {
            mistake = "the storage has sent no valid Content-Range"
            return
        }
        expected = present.count
        if present.lowerBound != range.lowerBound || present.upperBound != min(range.upperBound, size) {
            mistake = "the storage has sent another range than the requested one"
        }
    }

    /// Whether all requested bytes were received, although the response has more.
    var isEnough: Bool { count == limit && hasMore }
    var isComplete: Bool { count == expected }

    /// - Returns: a mistake in the response; `nil` if there is none.
    mutating func receive(from exchange: BlockingExchange, into buffer: UnsafeMutableRawBufferPointer) -> String? {
        if let mistake { return mistake }
        while count < limit {
            let read = exchange.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[count..<limit]))
            if read == 0 { return nil }
            count += read
        }
        return hasMore || exchange.readAll().isEmpty ? nil : "the storage has sent more than the requested range"
    }

    /// Parses `bytes FIRST-LAST/SIZE`.
    private static func contentRange(_ text: String) -> (present: Range<Int64>, size: Int64)? {
        guard text.hasPrefixIgnoringASCIICase("bytes ") else { return nil }
        let parts = text.dropFirst(6).split(separator: "/")
        let ends = parts.first?.split(separator: "-") ?? []
        guard parts.count == 2, ends.count == 2, let first = Int64(ends[0]), let last = Int64(ends[1]), first >= 0,
            last >= first, last < .max, let size = Int64(parts[1]), size > last
        else { return nil }
        return (first..<last + 1, size)
    }
}

extension StorageResponse {
    /// The time of `Retry-After` in nanoseconds; 0 if there is none.
    fileprivate var retryAfter: Int64 {
        guard let text = fields["Retry-After"] else { return 0 }
        let now = HTTPDate(secondsSinceEpoch: receivedAt)
        let seconds =
            Int64(text) ?? HTTPDate(parsing: text, relativeTo: now).map { $0.secondsSinceEpoch - receivedAt } ?? 0
        return min(max(seconds, 0), 86_400) * 1_000_000_000
    }
}
