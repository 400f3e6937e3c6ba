import Testing

/// A version of the draft that a request names.
enum Interop: Int, CaseIterable, Sendable, CustomTestStringConvertible {
    case v3 = 3
    case v4, v5, v6, v7, v8

    var testDescription: String { "interop \(rawValue)" }
}

/// A request as it goes onto the wire, valid or not.
struct Request: Sendable {
    enum Content: Sendable {
        /// No Content-Length, no content.
        case none
        /// With Content-Length.
        case bytes([UInt8])
        /// Content-Length alone; the test sends the content itself.
        case declared(Int64)
        /// Chunked, one chunk for each array.
        case chunks([[UInt8]])
        /// `Transfer-Encoding: chunked` alone; the test sends the chunks itself.
        case openChunks
    }

    var method: String
    var target: String
    var version = "HTTP/1.1"
    /// Field lines in order. `Host` is added in front unless there is one or `addsHost` is false.
    var fields: [(String, String)] = []
    var addsHost = true
    var content: Content = .none

    init(_ method: String, _ target: String, _ fields: [(String, String)] = [], _ content: Content = .none) {
        self.method = method
        self.target = target
        self.fields = fields
        self.content = content
    }

    /// The same with further field lines.
    func with(_ name: String, _ value: String) -> Request {
        var request = self
        request.fields.append((name, value))
        return request
    }

    /// The request line and header section.
    func head(authority: String) -> [UInt8] {
        var text = "\(method) \(target) \(version)\r\n"
        if addsHost && !fields.contains(where: { $0.0.lowercased() == "host" }) { text += "Host: \(authority)\r\n" }
        for (name, value) in fields { text += "\(name): \(value)\r\n" }
        switch content {
        case .none: break
        case .bytes(let bytes): text += "Content-Length: \(bytes.count)\r\n"
        case .declared(let count): text += "Content-Length: \(count)\r\n"
        case .chunks, .openChunks: text += "Transfer-Encoding: chunked\r\n"
        }
        return Array((text + "\r\n").utf8)
    }

    /// Everything that the request sends by itself.
    func serialized(authority: String) -> [UInt8] {
        switch content {
        case .none, .declared, .openChunks: head(authority: authority)
        case .bytes(let bytes): head(authority: authority) + bytes
        case .chunks(let chunks):
            head(authority: authority) + chunks.flatMap { Self.chunk($0) } + Self.lastChunk
        }
    }

    static func chunk(_ bytes: [UInt8]) -> [UInt8] {
        Array((String(bytes.count, radix: 16) + "\r\n").utf8) + bytes + Array("\r\n".utf8)
    }

    static let lastChunk = Array("0\r\n\r\n".utf8)
}

// MARK: - The requests of the draft

extension Request {
    /// A creation (draft section 4.2).
    /// - Parameters:
    ///   - version: the version that the request names; `nil` names none.
    ///   - isComplete: whether its content is the whole representation; `nil` leaves the field out.
    ///   - length: `Upload-Length`.
    static func creation(
        _ version: Interop? = .v8, _ method: String = "PUT", _ target: String = "/files/file.bin", complete: Bool?,
        length: Int? = nil, _ content: Content
    ) -> Request {
        var request = Request(method, target, versionField(version), content)
        if let complete { request.fields.append(completeness(version, complete)) }
        if let length { request.fields.append(("Upload-Length", "\(length)")) }
        return request
    }

    /// An append (draft section 4.4), with the media type that its version demands.
    static func append(
        _ version: Interop? = .v8, _ location: String, at offset: Int, complete: Bool?, length: Int? = nil,
        _ content: Content
    ) -> Request {
        var request = Request("PATCH", location, versionField(version), content)
        if (version?.rawValue ?? 8) >= 6 { request.fields.append(("Content-Type", "application/partial-upload")) }
        request.fields.append(("Upload-Offset", "\(offset)"))
        if let complete { request.fields.append(completeness(version, complete)) }
        if let length { request.fields.append(("Upload-Length", "\(length)")) }
        return request
    }

    /// An offset retrieval (draft section 4.3).
    static func retrieval(_ version: Interop? = .v8, _ location: String, _ method: String = "HEAD") -> Request {
        Request(method, location, versionField(version))
    }

    /// A cancellation (draft section 4.5).
    static func cancellation(_ version: Interop? = .v8, _ location: String) -> Request {
        Request("DELETE", location, versionField(version))
    }

    static func get(_ target: String) -> Request { Request("GET", target) }

    static func versionField(_ version: Interop?) -> [(String, String)] {
        version.map { [("Upload-Draft-Interop-Version", "\($0.rawValue)")] } ?? []
    }

    /// The completeness field of a version; that of version 3 is inverse.
    static func completeness(_ version: Interop?, _ isComplete: Bool) -> (String, String) {
        version == .v3 ? ("Upload-Incomplete", isComplete ? "?0" : "?1") : ("Upload-Complete", isComplete ? "?1" : "?0")
    }
}

extension FieldCarrier {
    /// Whether the response states completeness in its version's field, and in no other.
    func states(complete: Bool, in version: Interop?) -> Bool {
        version == .v3
            ? incomplete == !complete && !fields.contains("Upload-Complete")
            : self.complete == complete && !fields.contains("Upload-Incomplete")
    }
}
