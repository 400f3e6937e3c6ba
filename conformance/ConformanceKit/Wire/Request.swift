import HTTPSemantics

/// A request as it is sent; it may be invalid.
package struct Request: Sendable {
    package enum Content: Sendable {
        /// The request has no content, and neither Content-Length nor Transfer-Encoding.
        case none
        case bytes([UInt8])
        /// The head has this Content-Length. The caller sends the content.
        case declared(Int64)
        /// The request has `Transfer-Encoding: chunked`, and one chunk for each array.
        case chunks([[UInt8]])
        /// The head has `Transfer-Encoding: chunked`. The caller sends the chunks.
        case openChunks
    }

    package var method: String
    package var target: String
    package var version = "HTTP/1.1"
    /// The field lines in order. Host precedes them unless it is one of them.
    package var fields: [(String, String)] = []
    package var hasHost = true
    package var content: Content = .none

    /// Returns whether a text can be sent as a method: a token (RFC 9110 section 9.1).
    package static func isMethod(_ text: String) -> Bool { Fields.isValidName(text) }

    package init(_ method: String, _ target: String, _ fields: [(String, String)] = [], _ content: Content = .none) {
        self.method = method
        self.target = target
        self.fields = fields
        self.content = content
    }

    /// Returns the request with an additional field line.
    package func with(_ name: String, _ value: String) -> Request {
        var request = self
        request.fields.append((name, value))
        return request
    }

    /// Returns the request without the lines of a field.
    func without(_ name: String) -> Request {
        var request = self
        request.fields.removeAll { $0.0.lowercased() == name.lowercased() }
        return request
    }

    /// Returns the request with these lines instead of the existing lines of the field.
    func replacing(_ name: String, by values: String...) -> Request {
        var request = without(name)
        request.fields += values.map { (name, $0) }
        return request
    }

    package func head(authority: String) -> [UInt8] {
        var text = "\(method) \(target) \(version)\r\n"
        if hasHost, !fields.contains(where: { $0.0.lowercased() == "host" }) { text += "Host: \(authority)\r\n" }
        for (name, value) in fields { text += "\(name): \(value)\r\n" }
        switch content {
        case .none: break
        case .bytes(let bytes): text += "Content-Length: \(bytes.count)\r\n"
        case .declared(let count): text += "Content-Length: \(count)\r\n"
        case .chunks, .openChunks: text += "Transfer-Encoding: chunked\r\n"
        }
        return Array((text + "\r\n").utf8)
    }

    /// The content that the request contains, in its transfer coding.
    package var encodedContent: [UInt8] {
        switch content {
        case .none, .declared, .openChunks: []
        case .bytes(let bytes): bytes
        case .chunks(let chunks): chunks.flatMap { Self.chunk($0) } + Self.lastChunk
        }
    }

    package static func chunk(_ bytes: [UInt8]) -> [UInt8] {
        Array((String(bytes.count, radix: 16) + "\r\n").utf8) + bytes + Array("\r\n".utf8)
    }

    package static let lastChunk = Array("0\r\n\r\n".utf8)
}
