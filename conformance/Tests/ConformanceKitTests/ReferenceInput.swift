import ConformanceKit
import HTTPSemantics
import HTTPTestSupport
import SystemCalls

/// Reads requests as leniently as a reference server needs. One thread uses it.
///
/// Reading throws ``WireFailure``: `malformed` and `flood` if the request is invalid or too long.
final class ReferenceInput {
    private let input: PeerInput
    /// The deviations that the server accepts in chunks.
    var accepted: ContentDecoder.Tolerance = .extensions
    /// The trailer fields after the last chunk.
    private(set) var trailers: [String] = []

    init(_ connection: FileDescriptor) { input = PeerInput(connection, timeout: .seconds(20)) }

    /// Returns the lines of the next head without the empty line; `nil` if the connection ends.
    func head() throws -> [String]? {
        var lines: [String] = []
        var size = 0
        while true {
            guard let line = try? input.line(atMost: 64 << 10) else {
                if input.count > 60 << 10 { throw WireFailure.flood("a head without an end") }
                return nil
            }
            size += line.count
            guard size < 64 << 10 else { throw WireFailure.flood("a head without an end") }
            let text = String(decoding: line.last == UInt8(ascii: "\r") ? line.dropLast() : line, as: UTF8.self)
            if !text.isEmpty {
                lines.append(text)
            } else if !lines.isEmpty {
                return lines
            }
        }
    }

    /// Passes the content to `receive` piece by piece, until it returns false.
    func content(_ framing: MessageFraming, _ receive: (ArraySlice<UInt8>) -> Bool) throws {
        var decoder = ContentDecoder(framing, accepting: accepted)
        while let part = try input.part(of: &decoder), receive(part) {}
        trailers = decoder.trailers
    }

    /// Discards incoming bytes for a short time.
    func drain() { input.drain(timeout: .milliseconds(200)) }
}
