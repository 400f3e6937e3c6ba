import Glibc
import HTTPSemantics
import SystemCalls

/// Reads requests from a connection. One thread uses it.
final class PeerInput {
    private let connection: FileDescriptor
    private var bytes: [UInt8] = []
    private var position = 0
    /// The trailer fields after the last chunk.
    private(set) var trailers: [String] = []
    /// Whether the size of a chunk may be larger than `Int64.max`. It then counts as `Int64.max`.
    var acceptsHugeLengths = false
    /// Whether a line of the chunked coding may end with LF alone.
    var acceptsLineFeeds = false

    init(_ connection: FileDescriptor) {
        self.connection = connection
        var limit = timeval(tv_sec: 20, tv_usec: 0)
        setsockopt(connection.rawValue, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    }

    enum Failure: Error {
        case ended
        case tooLong
        case malformed
    }

    /// Returns the lines of the next head without the empty line; `nil` if the connection ends.
    func head() throws -> [String]? {
        var lines: [String] = []
        var size = 0
        while true {
            guard let line = try? line(atMost: 64 << 10) else {
                if bytes.count - position > 60 << 10 { throw Failure.tooLong }
                return nil
            }
            size += line.utf8.count
            guard size < 64 << 10 else { throw Failure.tooLong }
            if line.isEmpty {
                if lines.isEmpty { continue }
                return lines
            }
            lines.append(line)
        }
    }

    /// Passes the content to `receive` piece by piece, until it returns false.
    func content(_ framing: MessageFraming, _ receive: (ArraySlice<UInt8>) -> Bool) throws {
        switch framing {
        case .none: return
        case .length(let length): _ = try pieces(length, receive)
        case .chunked:
            trailers = []
            while true {
                let line = try line(atMost: 4096, strict: true)
                let digits = line.prefix { $0 != ";" }
                guard !digits.isEmpty, digits.utf8.count <= 15 || acceptsHugeLengths, digits.allSatisfy(\.isHexDigit)
                else { throw Failure.malformed }
                let size = Int64(digits, radix: 16) ?? .max
                if size == 0 { break }
                guard try pieces(size, receive) else { return }
                guard try self.line(atMost: 1, strict: true).isEmpty else { throw Failure.malformed }
            }
            while true {
                let line = try line(atMost: 4096)
                if line.isEmpty { return }
                trailers.append(line)
            }
        }
    }

    /// Discards incoming bytes for a short time.
    func drain() {
        var limit = timeval(tv_sec: 0, tv_usec: 200_000)
        setsockopt(connection.rawValue, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        while (try? fill()) != nil { position = bytes.count }
    }

    private func pieces(_ count: Int64, _ receive: (ArraySlice<UInt8>) -> Bool) throws -> Bool {
        var remaining = count
        while remaining > 0 {
            if position == bytes.count { try fill() }
            let size = Int(min(remaining, Int64(bytes.count - position)))
            let piece = bytes[position..<(position + size)]
            position += size
            remaining -= Int64(size)
            if !receive(piece) { return false }
        }
        return true
    }

    private func line(atMost maximum: Int, strict: Bool = false) throws -> String {
        while true {
            if let end = bytes[position...].firstIndex(of: UInt8(ascii: "\n")) {
                var line = bytes[position..<end]
                position = end + 1
                if line.last == UInt8(ascii: "\r") {
                    line = line.dropLast()
                } else if strict, !acceptsLineFeeds {
                    throw Failure.malformed
                }
                return String(decoding: line, as: UTF8.self)
            }
            guard bytes.count - position <= maximum + 1 else { throw Failure.tooLong }
            try fill()
        }
    }

    private func fill() throws {
        if position > 1 << 16 {
            bytes.removeFirst(position)
            position = 0
        }
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = recv(connection.rawValue, &buffer, buffer.count, 0)
            if count > 0 {
                bytes += buffer[..<count]
                return
            }
            if count == 0 || errno != EINTR { throw Failure.ended }
        }
    }
}
