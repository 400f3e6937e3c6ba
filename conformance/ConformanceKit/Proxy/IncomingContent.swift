import HTTPSemantics

/// Decodes the content of a request without I/O: counts its bytes and determines whether it is complete.
struct IncomingContent: Sendable {
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

    let framing: MessageFraming
    private(set) var count: Int64 = 0
    private var place: Place
    private var line: [UInt8] = []

    init(_ framing: MessageFraming) {
        self.framing = framing
        switch framing {
        case .none, .length(0): place = .end
        case .length(let length): place = .data(length)
        case .chunked: place = .sizeLine
        }
    }

    /// Whether all content has arrived, including the last chunk.
    var isComplete: Bool { if case .end = place { true } else { false } }

    /// Whether the content is invalid in the announced coding.
    var isBroken: Bool { if case .broken = place { true } else { false } }

    mutating func receive(_ bytes: some Collection<UInt8>) {
        var remaining = Array(bytes)[...]
        while !remaining.isEmpty {
            switch place {
            case .data(let left):
                let size = Int(min(left, Int64(remaining.count)))
                count += Int64(size)
                remaining = remaining.dropFirst(size)
                if left > Int64(size) {
                    place = .data(left - Int64(size))
                } else {
                    place = framing == .chunked ? .dataEnd : .end
                }
            case .sizeLine, .dataEnd, .trailers: receiveLine(&remaining)
            case .end, .broken: return
            }
        }
    }

    private mutating func receiveLine(_ remaining: inout ArraySlice<UInt8>) {
        guard let end = remaining.firstIndex(of: UInt8(ascii: "\n")) else {
            line += remaining
            remaining = []
            if line.count > 8192 { place = .broken }
            return
        }
        line += remaining[..<end]
        remaining = remaining[(end + 1)...]
        if line.last == UInt8(ascii: "\r") { line.removeLast() }
        defer { line = [] }
        switch place {
        case .sizeLine:
            let digits = String(
                decoding: line.prefix { $0 != UInt8(ascii: ";") && $0 != UInt8(ascii: " ") }, as: UTF8.self)
            guard let size = Int64(digits, radix: 16), size >= 0 else {
                place = .broken
                return
            }
            place = size == 0 ? .trailers : .data(size)
        case .dataEnd: place = line.isEmpty ? .sizeLine : .broken
        case .trailers: if line.isEmpty { place = .end }
        case .data, .end, .broken: break
        }
    }
}
