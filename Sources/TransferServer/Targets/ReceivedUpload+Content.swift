import FoundationEssentials
import HTTPSemantics
import SystemCalls
import UploadStorage

/// Content that a handler does not accept. If `complete(_:)` throws it, the client gets ``problem`` as the final
/// response instead of 500, and nothing is logged.
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
