/// A final response.
public struct Response: Sendable, Hashable {
    /// The content of a response.
    public enum Content: Sendable {
        /// All bytes, in memory.
        case bytes([UInt8])
        /// Bytes that are read or produced while they are sent.
        case stream(any ContentStream)
    }

    /// The status code.
    public var status: Status
    /// The header section, without `Content-Length`, `Date` and `Connection`, which the server adds.
    public var fields: Fields
    /// The content.
    public var content: Content

    /// Creates a response.
    public init(status: Status, fields: Fields = [:], content: Content = .bytes([])) {
        self.status = status
        self.fields = fields
        self.content = content
    }

    /// Creates a response whose content is in memory.
    public init(status: Status, fields: Fields = [:], content: [UInt8]) {
        self.init(status: status, fields: fields, content: .bytes(content))
    }

    /// A problem document (RFC 9457) with further fields.
    public init(_ problem: ProblemDetails, fields: Fields = [:]) {
        var fields = fields
        fields.set("Content-Type", ProblemDetails.mediaType)
        self.init(status: problem.status, fields: fields, content: problem.json())
    }
}

/// Content of a response that is read or produced while it is sent.
///
/// The server requests the next bytes when the connection is writable, so that production stops while the client does
/// not read, and only one piece is in memory. There is one call at a time. The object is released when the response was
/// sent or the connection has ended. For `HEAD`, `read` is never called.
public protocol ContentStream: AnyObject, Sendable {
    /// The number of bytes; `nil`, the default, if it is unknown before the end.
    var length: Int64? { get }

    /// Writes the next bytes to the start of `buffer`, which is not empty, and returns their number; 0 means the end of
    /// the content.
    /// - Parameter position: the number of bytes that were returned before.
    /// - Throws: any error. The client then gets a response that it can recognize as incomplete, and the error is
    ///   logged.
    func read(into buffer: UnsafeMutableRawBufferPointer, at position: Int64) throws -> Int
}

extension ContentStream {
    /// The default: `nil`.
    public var length: Int64? { nil }
}

extension Response.Content: Hashable {
    /// Bytes are compared; a stream equals only itself.
    public static func == (left: Self, right: Self) -> Bool {
        switch (left, right) {
        case (.bytes(let left), .bytes(let right)): left == right
        case (.stream(let left), .stream(let right)): left === right
        default: false
        }
    }

    /// Hashes the bytes, or the identity of a stream.
    public func hash(into hasher: inout Hasher) {
        switch self {
        case .bytes(let bytes): hasher.combine(bytes)
        case .stream(let stream): hasher.combine(ObjectIdentifier(stream))
        }
    }

    /// The bytes in memory; `nil` for a stream.
    public var bytes: [UInt8]? { if case .bytes(let bytes) = self { bytes } else { nil } }

    /// The number of bytes; `nil` if it is unknown before the end.
    public var length: Int64? {
        switch self {
        case .bytes(let bytes): Int64(bytes.count)
        case .stream(let stream): stream.length
        }
    }
}

extension Response {
    /// The reason why content cannot be loaded into memory.
    package enum LoadingError: Error, Hashable, CustomStringConvertible {
        /// The content has more bytes than the limit.
        case tooLong(limit: Int)
        /// The content has fewer bytes than its length.
        case incomplete

        package var description: String {
            switch self {
            case .tooLong(let limit): "the content of a saved response has more than \(limit) bytes"
            case .incomplete: "the content of a response has fewer bytes than its length"
            }
        }
    }

    /// The same response with all its content in memory; a stream is read to its end.
    /// - Throws: `LoadingError`, or the error of the stream.
    package func loaded(limit: Int = 1 << 20) throws -> Response {
        guard case .stream(let stream) = content else { return self }
        if let length = stream.length, length > Int64(limit) { throw LoadingError.tooLong(limit: limit) }
        let bytes =
            if let length = stream.length { try Self.read(stream, count: Int(length)) } else {
                try Self.read(stream, limit: limit)
            }
        return Response(status: status, fields: fields, content: bytes)
    }

    private static func read(_ stream: any ContentStream, count: Int) throws -> [UInt8] {
        try [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            let memory = UnsafeMutableRawBufferPointer(buffer)
            while filled < count {
                let remaining = UnsafeMutableRawBufferPointer(rebasing: memory[filled..<count])
                let read = try stream.read(into: remaining, at: Int64(filled))
                guard read > 0 else { throw LoadingError.incomplete }
                filled += read
            }
        }
    }

    /// Reads a stream of unknown length.
    private static func read(_ stream: any ContentStream, limit: Int) throws -> [UInt8] {
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = try piece.withUnsafeMutableBytes { try stream.read(into: $0, at: Int64(bytes.count)) }
            if count == 0 { return bytes }
            bytes += piece[..<count]
            if bytes.count > limit { throw LoadingError.tooLong(limit: limit) }
        }
    }
}
