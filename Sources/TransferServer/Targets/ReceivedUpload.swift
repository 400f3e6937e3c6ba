import FoundationEssentials
import HTTPSemantics
import SystemCalls
import UploadStorage

/// A complete representation for its target. Valid only during `complete(_:)`.
public final class ReceivedUpload: Sendable {
    /// The target of the upload.
    public let target: Target
    /// The method of the request that created the upload.
    public let method: Method
    /// The principal that created the upload.
    public let principal: String
    /// The fields of the creating request that ``TargetHandler/storedFields`` names, as
    /// ``TargetHandler/storedPart(of:)`` returned them. They are the same for plain and resumable uploads, even after a
    /// restart of the server. A field that was sent on several lines has as many values.
    public let fields: Fields
    /// The length of the representation in bytes.
    public let length: Int64
    /// Whether an existing resource may be replaced, as in ``UploadProposal/canReplace``.
    public let canReplace: Bool

    /// Identifies the upload in all calls of ``TargetHandler/complete(_:)`` for it, even after a restart of the server:
    /// 32 hexadecimal digits, which give no access to the upload. Store it with everything that the handler does
    /// elsewhere, so that a repeated call finds what the first one has done.
    public var idempotencyKey: String { lease.fingerprint }

    private struct Publishing {
        /// Whether a publication is running.
        var isRunning = false
        /// Whether the call of the handler has ended, so that no publication may begin.
        var hasCallEnded = false
        var result: Result<Response, StoreError>?
    }

    /// The request that completes the upload; `nil` if the handler does not forward requests.
    package let forwarding: ForwardingContext?

    /// The digests of `Repr-Digest` that were compared with the representation, as the value of a field; `nil` if the
    /// client sent none.
    package let verifiedDigest: String?

    /// A resource below the prefix of the handler.
    struct Resource {
        let target: Target
        /// Whether the principal of the upload may replace the resource.
        let canReplace: Bool
    }

    /// Returns the resource with a path in percent-encoding; `nil` if the path is not valid, or is not below the prefix of
    /// the handler.
    let resource: @Sendable (String) -> Resource?

    let store: UploadStore
    let executor: ThreadExecutor
    private let lease: UploadLease
    /// The value of `Repr-Digest` in the response.
    private let digestField: String?
    private let publishing = Monitor(Publishing())
    private let lastCheck = Monitor<CheckReport?>(nil)

    /// - Parameters:
    ///   - fields: the fields that the handler declared.
    ///   - executor: the executor of the handler; its thread may block.
    ///   - digest: the value of `Repr-Digest` in the response.
    init(
        target: Target, upload: NewUpload, fields: Fields, length: Int64, canReplace: Bool, lease: UploadLease,
        store: UploadStore, executor: ThreadExecutor, digest: String?, verifiedDigest: String?,
        forwarding: ForwardingContext?,
        resource: @escaping @Sendable (String) -> Resource?
    ) {
        self.target = target
        method = upload.method
        principal = upload.principal
        self.fields = fields
        self.length = length
        self.canReplace = canReplace
        self.lease = lease
        self.store = store
        self.executor = executor
        digestField = digest
        self.forwarding = forwarding
        self.resource = resource
        self.verifiedDigest = verifiedDigest
    }

    /// How the check before the publication ended, for log and metrics; `nil` if there was none.
    var check: CheckReport? {
        get { lastCheck.withLock { $0 } }
        set { lastCheck.withLock { $0 = newValue } }
    }

    /// Opens the file with the representation, at offset 0 and only for reading.
    /// - Returns: `nil` if the bytes are not in a local file.
    package func openForReading() throws(StoreError) -> FileDescriptor? { try lease.openForReading() }

    /// Records durably that the handler may have an effect from now on. If the process ends before the handler has
    /// returned, the upload gets ``StoreConfiguration/interruptedResponse``, even if
    /// ``TargetHandler/isCompletionRepeatable`` is `true`.
    package func beginEffect() throws(StoreError) { try lease.markProcessing() }

    /// Records durably that the handler had no effect, after ``beginEffect()``.
    package func withdrawEffect() throws(StoreError) { try lease.unmarkProcessing() }

    /// Gives the bytes a name in a directory of the application: see `UploadLease.share(in:)`.
    package func share(in directory: String) throws(StoreError) -> SharedFile { try lease.share(in: directory) }

    /// Reads bytes of the representation from `offset` on.
    /// - Returns: The number of bytes read, which is smaller than the buffer only at the end of the representation.
    /// - Throws: `StoreError` if the bytes cannot be read.
    public func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(StoreError) -> Int {
        try lease.read(into: buffer, at: offset)
    }

    /// Returns the digest of the representation. Its bytes are read for this, unless the creating request named the
    /// algorithm in `Repr-Digest` or `Want-Repr-Digest`.
    ///
    /// This method waits for the disk on the thread of the connection. So it does not block other actors or tasks.
    /// - Parameter algorithm: the hash algorithm (RFC 9530 section 5).
    /// - Returns: 32 bytes for `sha256`, 64 for `sha512`.
    /// - Throws: `StoreError` if the bytes cannot be read.
    public func digest(_ algorithm: DigestAlgorithm = .sha256) async throws(StoreError) -> [UInt8] {
        try await withTaskExecutorPreference(executor) { () async throws(StoreError) -> [UInt8] in
            try lease.representationDigest(algorithm)
        }
    }

    /// Publishes the bytes as a file, atomically, and stores the final response. The handler must return this response.
    ///
    /// This method waits for the disk on the thread of the connection. So it does not block other actors or tasks.
    /// - Parameter publication: the name, the fields and the response.
    /// - Returns: The response of `condition` if it rejected the file, `refused` if the file could not be published,
    ///   otherwise the response of `response`.
    /// - Throws: `StoreError`. After `targetIsDirectory`, `targetIsSpecial`, `parentIsFile` and `noFreeName` the
    ///   handler can still return a response of its own; if it throws them, the client gets 409.
    public func publish(_ publication: Publication) async throws(StoreError) -> Response {
        try await withTaskExecutorPreference(executor) { () async throws(StoreError) -> Response in
            try publishBlocking(publication)
        }
    }

    /// Publishes the bytes as the asynchronous method does, but blocks the calling thread until the file is published.
    /// Use it in handlers whose `complete(_:)` is not asynchronous.
    /// - Parameter publication: the name, the fields and the response.
    /// - Returns: The same as the asynchronous method.
    /// - Throws: `StoreError`, as the asynchronous method.
    public func publish(_ publication: Publication) throws(StoreError) -> Response { try publishBlocking(publication) }

    private func publishBlocking(_ publication: Publication) throws(StoreError) -> Response {
        guard beginPublication() else { throw .invalidState("the call of complete(_:) has ended") }
        var publication = publication
        if digestField != nil {
            publication.response = { [respond = publication.response] created, name in
                self.withDigest(respond(created, name))
            }
        }
        let result: Result<Response, StoreError>
        do throws(StoreError) { result = .success(try lease.publish(publication)) } catch { result = .failure(error) }
        publishing.withLock { state in
            state.isRunning = false
            // A second publication fails, because the upload is complete.
            if case .success? = state.result { return }
            state.result = result
        }
        publishing.notifyAll()
        return try result.get()
    }

    /// Waits for another publication of this upload. Returns false if the call of the handler has ended.
    private func beginPublication() -> Bool {
        publishing.waitForever { state in
            if state.hasCallEnded { return false }
            if state.isRunning { return nil }
            state.isRunning = true
            return true
        }
    }

    /// Ends the validity of the upload, and waits for a running publication: a handler that did not return in time must
    /// not use the bytes any more.
    func end() {
        publishing.withLock { $0.hasCallEnded = true }
        publishing.notifyAll()
        publishing.waitForever { $0.isRunning ? nil : () }
    }

    /// The result of `publish(_:)`; `nil` if it was not called.
    var publicationResult: Result<Response, StoreError>? { publishing.withLock { $0.result } }

    /// The response with the digest that the client requested.
    func withDigest(_ response: Response) -> Response {
        var response = response
        if let digestField { response.fields.set("Repr-Digest", digestField) }
        return response
    }
}

/// Content that a handler does not accept. If `complete(_:)` throws it, the client gets ``problem`` as the final
/// response instead of 500, and nothing is logged. This does not apply after a successful call of `publish(_:)` of the
/// upload, or after one with an error that does not concern the name.
public struct ContentRejection: Error, Sendable {
    /// The final response.
    public let problem: ProblemDetails

    /// Creates a rejection.
    /// - Parameter problem: the final response.
    public init(_ problem: ProblemDetails) { self.problem = problem }
}

/// Bytes of an upload: all of them, or those of a part of a form.
struct UploadBytes: Sendable {
    let upload: ReceivedUpload
    let range: Range<Int64>

    var length: Int64 { range.upperBound - range.lowerBound }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(StoreError) -> Int {
        guard offset >= 0, offset < length else { return 0 }
        let count = Int(min(Int64(buffer.count), length - offset))
        return try upload.read(
            into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<count]), at: range.lowerBound + offset)
    }

    /// Calls `body` with all bytes, in order and in pieces of at most 256 KiB, until it returns `false`.
    /// - Throws: `superseded` if the task was canceled, because reading must not delay the stop of the server.
    func forEachPiece(_ body: (UnsafeRawBufferPointer) throws(StoreError) -> Bool) throws(StoreError) {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 1)
        defer { buffer.deallocate() }
        var offset: Int64 = 0
        while offset < length {
            if Task.isCancelled { throw .superseded }
            let count = try read(into: buffer, at: offset)
            guard count > 0 else { throw .stateLost }
            guard try body(UnsafeRawBufferPointer(rebasing: buffer[..<count])) else { return }
            offset += Int64(count)
        }
    }

    /// Reads on the thread of the connection, which may block.
    func content(atMost limit: Int) async throws -> [UInt8] {
        guard length <= Int64(limit) else { throw ContentRejection(.contentTooLarge(limit: limit)) }
        return try await withTaskExecutorPreference(upload.executor) { () async throws(StoreError) -> [UInt8] in
            try entireContent()
        }
    }

    private func entireContent() throws(StoreError) -> [UInt8] {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Int(length), alignment: 1)
        defer { buffer.deallocate() }
        var offset = 0
        while offset < buffer.count {
            let count = try read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[offset...]), at: Int64(offset))
            guard count > 0 else { throw .stateLost }
            offset += count
        }
        return Array(buffer)
    }

    func decode<Value: Decodable>(
        _ type: Value.Type, atMost limit: Int, using decoder: JSONDecoder
    ) async throws -> Value {
        let bytes = try await content(atMost: limit)
        do { return try decoder.decode(type, from: Data(bytes)) } catch let error as DecodingError {
            throw ContentRejection(.invalidJSON(error))
        }
    }
}

/// The chunks of an upload or of a part of a form, in order.
public struct ContentChunks: AsyncIteratorProtocol {
    private static let size = 64 << 10
    private let bytes: UploadBytes
    private var offset: Int64 = 0

    init(_ bytes: UploadBytes) { self.bytes = bytes }

    /// Returns the next chunk, which has at most 65,536 bytes; `nil` after the last one.
    /// - Throws: `StoreError` if the bytes cannot be read.
    public mutating func next() async throws -> [UInt8]? {
        try nextChunk()
    }

    /// Returns the next chunk, which has at most 65,536 bytes; `nil` after the last one.
    /// - Parameter actor: the isolation of the caller.
    /// - Throws: `StoreError` if the bytes cannot be read.
    public mutating func next(isolation actor: isolated (any Actor)?) async throws(any Error) -> [UInt8]? {
        try nextChunk()
    }

    private mutating func nextChunk() throws -> [UInt8]? {
        guard offset < bytes.length else { return nil }
        let chunk = try [UInt8](unsafeUninitializedCapacity: Int(min(Int64(Self.size), bytes.length - offset))) {
            buffer, count in
            count = try bytes.read(into: UnsafeMutableRawBufferPointer(buffer), at: offset)
        }
        guard !chunk.isEmpty else { throw StoreError.stateLost }
        offset += Int64(chunk.count)
        return chunk
    }
}

extension ReceivedUpload: AsyncSequence {
    var bytes: UploadBytes { UploadBytes(upload: self, range: 0..<length) }

    /// Creates an iterator over the content in chunks, so that `for try await chunk in upload` reads it with little
    /// memory.
    public func makeAsyncIterator() -> ContentChunks { ContentChunks(bytes) }

    /// Returns the entire content.
    /// - Parameter limit: the maximum number of bytes.
    /// - Throws: ``ContentRejection`` with status 413 if the content is larger; `StoreError` if it cannot be read.
    public func content(atMost limit: Int) async throws -> [UInt8] { try await bytes.content(atMost: limit) }

    /// Decodes the content, which is JSON.
    /// - Parameters:
    ///   - type: the type of the value.
    ///   - limit: the maximum number of bytes.
    ///   - decoder: the decoder, for other settings than the default.
    /// - Throws: ``ContentRejection`` with status 413 if the content is larger, with status 400 if it is not JSON or
    ///   does not match the type; `StoreError` if it cannot be read.
    public func decode<Value: Decodable>(
        _ type: Value.Type, atMost limit: Int = 1 << 20, using decoder: JSONDecoder = JSONDecoder()
    ) async throws -> Value {
        try await bytes.decode(type, atMost: limit, using: decoder)
    }
}

extension ProblemDetails {
    static func contentTooLarge(limit: Int) -> ProblemDetails {
        ProblemDetails(
            status: 413, detail: "The content may have at most \(limit) bytes.", code: "content-too-large",
            members: [("limit", .integer(Int64(limit)))])
    }

    /// The detail names the place in the JSON, but no types of the program.
    static func invalidJSON(_ error: DecodingError) -> ProblemDetails {
        let (reason, path): (String, [any CodingKey]) =
            switch error {
            case .keyNotFound(let key, let context): ("a member is missing", context.codingPath + [key])
            case .valueNotFound(_, let context): ("a value is null", context.codingPath)
            case .typeMismatch(_, let context): ("a value has the wrong type", context.codingPath)
            case .dataCorrupted(let context):
                context.codingPath.isEmpty ? ("it is not JSON", []) : ("a value is invalid", context.codingPath)
            @unknown default: ("it is not JSON", [])
            }
        let place = path.reduce("") { place, key in
            if let index = key.intValue { return place + "[\(index)]" }
            return place.isEmpty ? key.stringValue : "\(place).\(key.stringValue)"
        }
        return ProblemDetails(
            status: 400,
            detail: "The content cannot be used: \(reason)\(place.isEmpty ? "" : " at \(place)").", code: "invalid-json"
        )
    }
}
