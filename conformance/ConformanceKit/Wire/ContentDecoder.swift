import HTTPSemantics

/// Decodes the content of a message without I/O, for the harness and for the servers of tests.
package struct ContentDecoder: Sendable {
    /// What the chunked coding may contain besides sizes, data and trailer fields in lines that end with CR LF.
    package struct Tolerance: OptionSet, Sendable {
        package let rawValue: Int

        package init(rawValue: Int) { self.rawValue = rawValue }

        /// Chunk extensions (RFC 9112 section 7.1.1).
        package static let extensions = Tolerance(rawValue: 1)
        /// Lines that end with LF alone.
        package static let lineFeeds = Tolerance(rawValue: 2)
        /// White space after the size of a chunk that has no extension.
        package static let blanks = Tolerance(rawValue: 4)
        /// Sizes above `Int64.max`, which count as `Int64.max`.
        package static let hugeSizes = Tolerance(rawValue: 8)
    }

    private enum Place {
        /// The next byte belongs to a chunk, or to content with a length. This number of bytes of that chunk or content
        /// has not arrived yet.
        case data(Int64)
        case sizeLine
        case dataEnd
        case trailers
        case end
        case broken
    }

    private static let maxLine = 8192
    private static let maxTrailers = 1000

    package let framing: MessageFraming
    private let accepted: Tolerance
    /// The number of bytes of the content that have been decoded.
    package private(set) var count: Int64 = 0
    /// The field lines that have arrived after the last chunk.
    package private(set) var trailers: [String] = []
    private var place: Place
    private var line: [UInt8] = []

    package init(_ framing: MessageFraming, accepting accepted: Tolerance = []) {
        self.framing = framing
        self.accepted = accepted
        switch framing {
        case .none, .length(0): place = .end
        case .length(let length): place = .data(length)
        case .chunked: place = .sizeLine
        }
    }

    /// Whether all content has arrived, including the last chunk and the trailer section.
    package var isComplete: Bool { if case .end = place { true } else { false } }

    /// Whether the next byte is one of the content, and not of its transfer coding.
    var isWithinData: Bool { if case .data = place { true } else { false } }

    /// Decodes the beginning of `bytes`, and removes it from them.
    /// - Returns: the next part of the content, of at most `maxCount` bytes. It is empty if more bytes have to arrive, or
    ///   if the content is complete.
    /// - Throws: ``WireFailure/malformed(_:)`` or ``WireFailure/flood(_:)``, now and at every later call.
    package mutating func next(
        from bytes: inout ArraySlice<UInt8>, atMost maxCount: Int64 = .max
    ) throws(WireFailure) -> ArraySlice<UInt8> {
        while !bytes.isEmpty {
            switch place {
            case .data(let left):
                let part = bytes.prefix(Int(min(left, maxCount, Int64(bytes.count))))
                bytes = bytes.dropFirst(part.count)
                count += Int64(part.count)
                if left > Int64(part.count) {
                    place = .data(left - Int64(part.count))
                } else {
                    place = framing == .chunked ? .dataEnd : .end
                }
                return part
            case .sizeLine, .dataEnd, .trailers:
                do throws(WireFailure) { try readLine(from: &bytes) } catch {
                    place = .broken
                    throw error
                }
            case .end: return []
            case .broken: throw .malformed("bytes after an invalid chunk")
            }
        }
        return []
    }

    private mutating func readLine(from bytes: inout ArraySlice<UInt8>) throws(WireFailure) {
        let end = bytes.firstIndex(of: UInt8(ascii: "\n"))
        line += bytes[..<(end ?? bytes.endIndex)]
        bytes = bytes[(end.map { $0 + 1 } ?? bytes.endIndex)...]
        guard line.count <= Self.maxLine else { throw .flood("a line of a chunk is longer than \(Self.maxLine) bytes") }
        if case .dataEnd = place, !line.isEmpty, line != [UInt8(ascii: "\r")] {
            throw .malformed("no CRLF after the data of a chunk")
        }
        guard end != nil else { return }
        defer { line = [] }
        if line.last == UInt8(ascii: "\r") {
            line.removeLast()
        } else if !accepted.contains(.lineFeeds) {
            throw .malformed("a line of a chunk ends with LF alone")
        }
        switch place {
        case .sizeLine:
            let size = try chunkSize()
            place = size == 0 ? .trailers : .data(size)
        case .dataEnd: place = .sizeLine
        case .trailers where line.isEmpty: place = .end
        case .trailers:
            trailers.append(String(decoding: line, as: UTF8.self))
            guard trailers.count < Self.maxTrailers else { throw .flood("\(Self.maxTrailers) trailer fields") }
        case .data, .end, .broken: break
        }
    }

    private func chunkSize() throws(WireFailure) -> Int64 {
        let digits = line.prefix { Character(Unicode.Scalar($0)).isHexDigit }
        let behind = line[digits.endIndex...]
        let text = behind.drop { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
        let isValid =
            text.isEmpty
            ? behind.isEmpty || accepted.contains(.blanks)
            : text.first == UInt8(ascii: ";") && accepted.contains(.extensions)
        let size = Int64(String(decoding: digits, as: UTF8.self), radix: 16)
        guard isValid, !digits.isEmpty, let size = size ?? (accepted.contains(.hugeSizes) ? .max : nil) else {
            throw .malformed("an invalid chunk size: '\(String(decoding: line.prefix(40), as: UTF8.self))'")
        }
        return size
    }
}
