import HTTPSemantics

/// The bytes of a request in HTTP/1.1: its head, and then its content with the framing.
struct RequestWriter {
    /// The maximum number of bytes of content that are read from the source at once.
    private static let maxPiece = 512 << 10
    /// The room before and after a piece for the framing of a chunk.
    private static let (sizeRoom, endRoom) = (18, 2)

    private let content: RequestContent
    private let source: (any UploadSource)?
    /// The head; after it was sent, a buffer for pieces of content.
    private var bytes: [UInt8]
    /// The part of `bytes` that was not sent.
    private var unsent: Range<Int>
    private var isBuffer = false
    /// The number of bytes of content that were read from the source.
    private(set) var readCount: Int64 = 0
    /// Whether all bytes of the request are in `bytes` or were sent.
    private(set) var isAtEnd: Bool
    private(set) var failure: TransportFailure?

    /// - Returns: `nil` if the request must not be sent, because its receiver could parse it as a different request.
    init?(_ request: TransportRequest) {
        guard let head = Self.head(of: request) else { return nil }
        content = request.sentContent
        source = request.source
        bytes = head
        unsent = 0..<head.count
        isAtEnd = !content.hasBytes
    }

    /// Whether the complete request was passed to the kernel.
    var isSent: Bool { isAtEnd && unsent.isEmpty }
    /// Whether there are bytes to send.
    var hasUnsent: Bool { !unsent.isEmpty }
    /// The number of bytes of content that were passed to the kernel.
    var sentCount: Int64 { isBuffer ? max(readCount - Int64(unsent.count), 0) : 0 }

    /// Reads the next piece of content from the source, if all bytes before it were sent and the source has bytes.
    mutating func fill() {
        guard unsent.isEmpty, !isAtEnd, failure == nil else { return }
        let limit: Int64? = if case .remaining(_, let limit) = content { limit } else { content.count }
        let room = limit.map { $0 - readCount } ?? .max
        if room <= 0 { return end() }
        if !isBuffer {
            isBuffer = true
            let size = Int(min(room, Int64(Self.maxPiece)))
            bytes = [UInt8](repeating: 0, count: Self.sizeRoom + size + Self.endRoom)
        }
        let offset = content.start + readCount
        let count: Int?
        do throws(SourceError) {
            count = try read(atMost: Int(min(room, Int64(bytes.count - Self.sizeRoom - Self.endRoom))), at: offset)
        } catch {
            failure = .sourceFailed(at: offset, error)
            return
        }
        guard let count else { return }
        guard count > 0 else {
            if content.count == nil { return end() }
            failure = .sourceFailed(at: offset, .unavailable(at: offset))
            return
        }
        readCount += Int64(count)
        unsent = Self.sizeRoom..<(Self.sizeRoom + count)
        if content.count == nil { frame(count) } else { isAtEnd = readCount == limit }
    }

    /// - Returns: `nil` if the source does not have the byte yet.
    private mutating func read(atMost limit: Int, at offset: Int64) throws(SourceError) -> Int? {
        let source = source
        let result = bytes.withUnsafeMutableBytes { bytes in
            let part = UnsafeMutableRawBufferPointer(rebasing: bytes[Self.sizeRoom..<(Self.sizeRoom + limit)])
            return Result { () throws(SourceError) -> Int? in
                guard let growing = source as? any GrowingSource else {
                    return try source?.read(into: part, at: offset) ?? 0
                }
                return try growing.read(into: part, at: offset, orCall: {})
            }
        }
        return try result.get().map { min($0, limit) }
    }

    /// Writes the framing of a chunk around the piece (RFC 9112 section 7.1).
    private mutating func frame(_ count: Int) {
        let size = Array("\(String(count, radix: 16))\r\n".utf8)
        let start = Self.sizeRoom - size.count
        bytes.replaceSubrange(start..<Self.sizeRoom, with: size)
        bytes.replaceSubrange(unsent.upperBound..<(unsent.upperBound + Self.endRoom), with: "\r\n".utf8)
        unsent = start..<(unsent.upperBound + Self.endRoom)
    }

    private mutating func end() {
        isAtEnd = true
        guard content.count == nil else { return }
        let last = Array("0\r\n\r\n".utf8)
        bytes.replaceSubrange(..<last.count, with: last)
        unsent = 0..<last.count
    }

    /// Calls `body` with the bytes to send.
    func withUnsent<Value>(_ body: (UnsafeRawBufferPointer) -> Value) -> Value {
        bytes.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[unsent])) }
    }

    /// Notes that `count` bytes were sent.
    mutating func advance(_ count: Int) { unsent = (unsent.lowerBound + count)..<unsent.upperBound }

    // MARK: The head

    private static let framing = ["Expect", "Content-Length", "Transfer-Encoding"]

    private static func head(of request: TransportRequest) -> [UInt8]? {
        let (authority, path) = parts(of: request.uri)
        let target = request.target ?? path
        guard Fields.isValidName(request.method.rawValue), request.fields.firstInvalid == nil,
            target.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F })
        else { return nil }
        var head: [UInt8] = []
        head.reserveCapacity(
            request.fields.reduce(128 + target.utf8.count) { $0 + $1.name.utf8.count + $1.value.utf8.count + 4 })
        func append(_ name: String, _ value: String) {
            head += name.utf8
            head += ": ".utf8
            value.appendFieldBytes(to: &head)
            head += "\r\n".utf8
        }
        head += request.method.rawValue.utf8
        head.append(UInt8(ascii: " "))
        head += target.utf8
        head += " HTTP/1.1\r\n".utf8
        // Host is the first field (RFC 9110 section 7.2).
        append("Host", request.fields["Host"] ?? authority)
        for field in request.fields
        where !field.name.equalsIgnoringASCIICase("Host")
            && !framing.contains(where: field.name.equalsIgnoringASCIICase)
        {
            append(field.name, field.value)
        }
        switch request.sentContent {
        case .none: break
        case .empty: append("Content-Length", "0")
        case .range(_, let count): append("Content-Length", "\(count)")
        case .remaining: append("Transfer-Encoding", "chunked")
        }
        head += "\r\n".utf8
        return head
    }

    /// The authority, and the path with the query.
    private static func parts(of uri: String) -> (authority: String, path: String) {
        var remaining = uri[...]
        if let scheme = remaining.utf8.firstIndex(of: UInt8(ascii: ":")) {
            remaining = remaining[scheme...].dropFirst(3)
        }
        let slash = remaining.utf8.firstIndex(of: UInt8(ascii: "/")) ?? remaining.endIndex
        let path = remaining[slash...].prefix { $0 != "#" }
        return (String(remaining[..<slash]), path.isEmpty ? "/" : String(path))
    }
}
