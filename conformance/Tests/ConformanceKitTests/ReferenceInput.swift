import ConformanceKit
import HTTPSemantics
import HTTPTestSupport
import SystemCalls

/// Reads requests as leniently as a reference server needs. One thread uses it.
final class ReferenceInput {
    private let input: PeerInput
    /// The trailer fields after the last chunk.
    private(set) var trailers: [String] = []
    /// Whether the size of a chunk may be larger than `Int64.max`. It then counts as `Int64.max`.
    var acceptsHugeLengths = false
    /// Whether a line of the chunked coding may end with LF alone.
    var acceptsLineFeeds = false

    init(_ connection: FileDescriptor) { input = PeerInput(connection, timeout: .seconds(20)) }

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
                if input.count > 60 << 10 { throw Failure.tooLong }
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
    func drain() { input.drain(timeout: .milliseconds(200)) }

    private func pieces(_ count: Int64, _ receive: (ArraySlice<UInt8>) -> Bool) throws -> Bool {
        var remaining = count
        while remaining > 0 {
            guard let piece = try? input.part(atMost: Int(clamping: remaining)) else { throw Failure.ended }
            remaining -= Int64(piece.count)
            if !receive(piece) { return false }
        }
        return true
    }

    private func line(atMost maximum: Int, strict: Bool = false) throws -> String {
        let line: ArraySlice<UInt8>
        do { line = try input.line(atMost: maximum + 1) } catch WireFailure.flood { throw Failure.tooLong } catch {
            throw Failure.ended
        }
        guard line.last == UInt8(ascii: "\r") else {
            if strict, !acceptsLineFeeds { throw Failure.malformed }
            return String(decoding: line, as: UTF8.self)
        }
        return String(decoding: line.dropLast(), as: UTF8.self)
    }
}
