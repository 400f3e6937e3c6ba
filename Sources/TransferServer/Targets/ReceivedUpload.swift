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
    /// ``TargetHandler/storedPart(of:)`` returned them. They are the same for plain and resumable uploads, also after a
    /// restart of the server. A field that was sent on several lines has as many values.
    public let fields: Fields
    /// The length of the representation in bytes.
    public let length: Int64
    /// Whether an existing resource may be replaced, as in ``UploadProposal/mayReplace``.
    public let mayReplace: Bool

    /// Identifies the upload in all calls of ``TargetHandler/complete(_:)`` for it, also after a restart of the server:
    /// 32 hexadecimal digits, which give no access to the upload. Store it with everything that the handler does
    /// elsewhere, so that a repeated call finds what the first one has done.
    public var idempotencyKey: String { lease.fingerprint }

    private struct Publishing {
        var isRunning = false
        var hasEnded = false
        var result: Result<Response, StoreError>?
    }

    let store: UploadStore
    let executor: ThreadExecutor
    private let lease: UploadLease
    /// The value of `Repr-Digest` in the response.
    private let digestField: String?
    private let publishing = Monitor(Publishing())

    /// - Parameters:
    ///   - fields: the fields that the handler declared.
    ///   - executor: the executor of the handler; its thread may block.
    ///   - digest: the value of `Repr-Digest` in the response.
    init(
        target: Target, upload: NewUpload, fields: Fields, length: Int64, mayReplace: Bool, lease: UploadLease,
        store: UploadStore, executor: ThreadExecutor, digest: String?
    ) {
        self.target = target
        method = upload.method
        principal = upload.principal
        self.fields = fields
        self.length = length
        self.mayReplace = mayReplace
        self.lease = lease
        self.store = store
        self.executor = executor
        digestField = digest
    }

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
            if state.hasEnded { return false }
            if state.isRunning { return nil }
            state.isRunning = true
            return true
        }
    }

    /// Ends the validity of the upload, and waits for a running publication: a handler that did not return in time must
    /// not use the bytes any more.
    func end() {
        publishing.withLock { $0.hasEnded = true }
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
