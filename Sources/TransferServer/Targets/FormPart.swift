import Digests
import FoundationEssentials
import HTTPSemantics
import UploadStorage

/// The limits of a form. The size of a form is limited by ``ServerConfiguration/limits``.
public struct FormLimits: Sendable, Hashable {
    /// The maximum number of parts.
    public var maxParts: Int
    /// The maximum size of the fields of one part in bytes.
    public var maxHeadSize: Int

    /// Creates limits.
    /// - Parameters:
    ///   - maxParts: the maximum number of parts.
    ///   - maxHeadSize: the maximum size of the fields of one part in bytes.
    public init(maxParts: Int = 100, maxHeadSize: Int = 16 << 10) {
        self.maxParts = maxParts
        self.maxHeadSize = maxHeadSize
    }
}

/// A part of an upload that is a form: the value of a form field, or a file. Valid only during `complete(_:)`.
///
/// `for try await chunk in part` reads the content with little memory.
public struct FormPart: Sendable {
    /// The name of the form field. Several parts can have the same name.
    public let name: String
    /// The name of the file as the client sent it; `nil` if the part is not a file. It is untrusted: it can have
    /// slashes, for example. See ``safeFilename``.
    public let filename: String?
    /// All fields of the part.
    public let fields: Fields
    private let bytes: UploadBytes

    init(_ part: MultipartFormScanner.Part, of upload: ReceivedUpload) {
        name = part.head.name
        filename = part.head.filename
        fields = part.head.fields
        bytes = UploadBytes(upload: upload, range: part.content)
    }

    /// The media type: the value of `Content-Type`, and `text/plain` if the part has none (RFC 7578 section 4.4).
    public var mediaType: String { fields["Content-Type"] ?? "text/plain" }

    /// The length of the content in bytes.
    public var length: Int64 { bytes.length }

    /// The last component of ``filename`` without characters that are dangerous in a name of a file; `nil` if nothing
    /// remains.
    public var safeFilename: String? { filename.flatMap { SafeFileName(sanitizing: $0)?.value } }

    /// Returns the entire content.
    /// - Parameter limit: the maximum number of bytes.
    /// - Throws: ``ContentRejection`` with status 413 if the content is larger; `StoreError` if it cannot be read.
    public func content(atMost limit: Int) async throws -> [UInt8] { try await bytes.content(atMost: limit) }

    /// Returns the content as a text in UTF-8.
    /// - Parameter limit: the maximum number of bytes.
    /// - Throws: ``ContentRejection`` with status 413 if the content is larger, with status 400 if it is not UTF-8;
    ///   `StoreError` if it cannot be read.
    public func text(atMost limit: Int) async throws -> String {
        guard let text = String(validating: try await content(atMost: limit), as: UTF8.self) else {
            throw ContentRejection(.malformedForm("the text of a part is not UTF-8"))
        }
        return text
    }

    /// Decodes the content, which is JSON.
    /// - Parameters:
    ///   - type: the type of the value.
    ///   - limit: the maximum number of bytes.
    ///   - decoder: the decoder, for other settings than the default.
    /// - Throws: the same errors as ``ReceivedUpload/decode(_:atMost:using:)``.
    public func decode<Value: Decodable>(
        _ type: Value.Type, atMost limit: Int = 1 << 20, using decoder: JSONDecoder = JSONDecoder()
    ) async throws -> Value {
        try await bytes.decode(type, atMost: limit, using: decoder)
    }

    /// Reads bytes of the content from `offset` on.
    /// - Parameters:
    ///   - buffer: the destination.
    ///   - offset: the position in the content of this part.
    /// - Returns: The number of bytes read, which is smaller than the buffer only at the end of the part.
    /// - Throws: `StoreError` if the bytes cannot be read.
    public func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(StoreError) -> Int {
        try bytes.read(into: buffer, at: offset)
    }

    /// Returns the digest of the content. The method reads the content on the thread of the connection.
    /// - Parameter algorithm: the hash algorithm (RFC 9530 section 5).
    /// - Returns: 32 bytes for `sha256`, 64 for `sha512`.
    /// - Throws: `StoreError` if the content cannot be read.
    public func digest(_ algorithm: DigestAlgorithm = .sha256) async throws(StoreError) -> [UInt8] {
        try await withTaskExecutorPreference(bytes.upload.executor) { () throws(StoreError) -> [UInt8] in
            var digest = RunningDigest(algorithm.hash)
            try bytes.forEachPiece { piece in
                digest.update(piece)
                return true
            }
            return digest.finalized()
        }
    }

    /// Publishes a copy of the content as a file, atomically. The file is durable when this method returns.
    ///
    /// Each part is published separately, before the response of the handler is stored. If the process ends before the
    /// response is stored, some files exist and the upload is interrupted, see
    /// ``TargetHandler/isCompletionRepeatable``. During this call the copy counts against the quota of the principal.
    /// - Parameter publication: the name, the fields, and the response that this method returns. The handler returns
    ///   the response to the client.
    /// - Returns: The response of `condition` if it rejected the file, `refused` if the file could not be published,
    ///   otherwise the response of `response`.
    /// - Throws: `StoreError`. If the handler throws it, the client gets the status that describes the error, such as
    ///   409 or 507, otherwise 500.
    public func publish(_ publication: Publication) async throws(StoreError) -> Response {
        try await withTaskExecutorPreference(bytes.upload.executor) { () throws(StoreError) -> Response in
            try publishBlocking(publication)
        }
    }

    private func publishBlocking(_ publication: Publication) throws(StoreError) -> Response {
        let upload = bytes.upload
        let lease = try upload.store.createTransient(
            NewUpload(
                principal: upload.principal, method: upload.method, target: upload.target.reference,
                fields: publication.fields, length: length))
        defer { lease.release() }
        try bytes.forEachPiece { (piece) throws(StoreError) in
            try lease.append(piece)
            return true
        }
        return try lease.publish(publication)
    }
}

extension FormPart: AsyncSequence {
    /// Creates an iterator over the content in chunks.
    public func makeAsyncIterator() -> ContentChunks { ContentChunks(bytes) }
}

extension ReceivedUpload {
    /// Finds the parts of an upload that is `multipart/form-data`, as HTML forms and `curl -F` send it. It reads the
    /// content once, without keeping it in memory.
    ///
    /// This method needs the `Content-Type` of the upload, so ``TargetHandler/storedFields`` must contain this name, as
    /// the default does.
    /// - Parameter limits: the limits of the form.
    /// - Returns: the parts in their order.
    /// - Throws: ``ContentRejection`` with status 415 if the upload is not a form, with status 413 if it exceeds the
    ///   limits, with status 400 if it is malformed; `StoreError` if it cannot be read.
    public func formParts(limits: FormLimits = FormLimits()) async throws -> [FormPart] {
        guard let boundary = fields["Content-Type"].flatMap({ MultipartFormScanner.boundary(ofContentType: $0) }) else {
            throw ContentRejection(.noForm)
        }
        let scanner = MultipartFormScanner(
            boundary: boundary, maxParts: limits.maxParts, maxHeadSize: limits.maxHeadSize)
        do {
            return try await withTaskExecutorPreference(executor) { try scan(with: scanner) }.get().map {
                FormPart($0, of: self)
            }
        } catch let error as FormError {
            throw ContentRejection(ProblemDetails(error))
        }
    }

    private func scan(
        with scanner: MultipartFormScanner
    ) throws(StoreError) -> Result<[MultipartFormScanner.Part], FormError> {
        var scanner = scanner
        var failure: FormError?
        try bytes.forEachPiece { piece in
            do throws(FormError) { try scanner.scan(piece) } catch { failure = error }
            return failure == nil
        }
        if let failure { return .failure(failure) }
        return Result { () throws(FormError) in try scanner.finish() }
    }
}

extension ProblemDetails {
    static let noForm = ProblemDetails(
        status: 415, detail: "The content must be multipart/form-data with a valid boundary.",
        code: "unsupported-media-type")

    static func malformedForm(_ reason: String) -> ProblemDetails {
        ProblemDetails(status: 400, detail: "The form is malformed: \(reason).", code: "malformed-form")
    }

    init(_ error: FormError) {
        switch error {
        case .malformed(let reason): self = .malformedForm(reason)
        case .tooManyParts(let limit):
            self.init(
                status: 413, detail: "The form may have at most \(limit) parts.", code: "form-too-large",
                members: [("limit", .integer(Int64(limit)))])
        case .headTooLarge(let limit):
            self.init(
                status: 413, detail: "The fields of a part may have at most \(limit) bytes.", code: "form-too-large",
                members: [("limit", .integer(Int64(limit)))])
        }
    }
}
