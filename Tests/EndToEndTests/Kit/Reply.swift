import ConformanceKit
import Glibc
import HTTPSemantics
import SystemCalls

/// What a script does with one request: reads its content, answers, or does not. Used by the connection's thread alone.
///
/// Reading and sending throw ``WireFailure`` once the connection is over, or when nothing has happened for half a
/// minute. A script need not catch that.
final class Reply {
    private enum Framing {
        /// Bytes left.
        case sized(Int64)
        /// Bytes left of the chunk.
        case chunked(Int64)
    }

    private let connection: FileDescriptor
    private let note: (_ content: UnsafeRawBufferPointer, _ isWhole: Bool) -> Void
    private var input: ConnectionInput
    private var framing: Framing
    private let isToHead: Bool
    /// Whether a final response was sent.
    private(set) var isAnswered = false
    /// Whether nothing more can be done on this connection.
    private(set) var isOver = false
    /// Whether the content was read to its end.
    private(set) var isContentWhole = false

    init(
        to head: ReceivedRequest, on connection: FileDescriptor, _ input: ConnectionInput,
        note: @escaping (UnsafeRawBufferPointer, Bool) -> Void
    ) {
        self.connection = connection
        self.input = input
        self.note = note
        isToHead = head.method == "HEAD"
        framing =
            head.fields.contains("Transfer-Encoding")
            ? .chunked(0) : .sized(head.fields["Content-Length"].flatMap { Int64($0) } ?? 0)
        _ = endsHere()
    }

    // MARK: Content

    /// Waits for `most` bytes of content, or its end.
    func readBody(atMost most: Int) throws -> [UInt8] {
        var result: [UInt8] = []
        try take(most) { result.append(contentsOf: $0) }
        return result
    }

    /// All of the content.
    func readAll() throws -> [UInt8] { try readBody(atMost: .max) }

    /// Reads all of the content, or `most` bytes of it, without keeping any.
    /// - Returns: how many they were.
    @discardableResult
    func discardBody(atMost most: Int = .max) throws -> Int {
        var count = 0
        try take(most) { count += $0.count }
        return count
    }

    private func take(_ most: Int, _ body: (UnsafeRawBufferPointer) -> Void) throws {
        var left = most
        while left > 0, try beginPart() {
            let part: Int64
            switch framing {
            case .sized(let size), .chunked(let size): part = size
            }
            let count = try input.take(Int(clamping: min(part, Int64(left)))) { bytes in
                body(bytes)
                note(bytes, false)
            }
            left -= count
            switch framing {
            case .sized(let size): framing = .sized(size - Int64(count))
            case .chunked(let size):
                framing = .chunked(size - Int64(count))
                if size == Int64(count) { _ = try input.line() }
            }
        }
        _ = endsHere()
    }

    /// Whether there is content to come. Reads the size of the next chunk where that is not known.
    private func beginPart() throws -> Bool {
        if isContentWhole || endsHere() { return false }
        guard case .chunked(0) = framing else { return true }
        let line = try input.line()
        guard let size = Int64(line.prefix { $0 != ";" }, radix: 16) else {
            throw WireFailure.malformed("chunk \(line)")
        }
        framing = .chunked(size)
        if size > 0 { return true }
        while try !input.line().isEmpty {}
        end()
        return false
    }

    private func endsHere() -> Bool {
        if case .sized(0) = framing, !isContentWhole { end() }
        return isContentWhole
    }

    private func end() {
        isContentWhole = true
        note(UnsafeRawBufferPointer(start: nil, count: 0), true)
    }

    // MARK: Response

    /// Sends bytes as they are. A response made of them alone is followed by ``close()``, or by ``answered()``.
    func send(raw text: String) throws { try send(raw: Array(text.utf8)) }

    func send(raw bytes: [UInt8]) throws {
        guard !isOver else { throw WireFailure.reset("by the peer") }
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes {
                Glibc.send(
                    connection.rawValue, $0.baseAddress?.advanced(by: sent), bytes.count - sent, Int32(MSG_NOSIGNAL))
            }
            if count > 0 {
                sent += count
            } else if errno != EINTR {
                isOver = true
                throw errno == EAGAIN ? WireFailure.timedOut("sending") : WireFailure.reset("by the peer")
            }
        }
    }

    /// An interim response.
    func interim(_ status: Int, _ fields: Fields = [:]) throws { try send(raw: head(status, fields) + "\r\n") }

    /// A final response with Content-Length. To HEAD it goes without its content.
    func respond(_ status: Int, _ fields: Fields = [:], _ body: String = "") throws {
        try respond(status, fields, Array(body.utf8))
    }

    func respond(_ status: Int, _ fields: Fields = [:], _ body: [UInt8]) throws {
        isAnswered = true
        let hasLength = status != 204 && status != 304 && !fields.contains("Content-Length")
        let length = hasLength ? "Content-Length: \(body.count)\r\n" : ""
        try send(raw: Array((head(status, fields) + length + "\r\n").utf8) + (isToHead ? [] : body))
    }

    /// A final head alone: the script sends the content itself, framed as in the fields.
    func begin(_ status: Int, _ fields: Fields = [:]) throws {
        isAnswered = true
        try send(raw: head(status, fields) + "\r\n")
    }

    /// One chunk of a chunked response; an empty one is the last.
    func send(chunk text: String) throws {
        try send(raw: String(text.utf8.count, radix: 16) + "\r\n" + text + "\r\n")
    }

    /// What was sent with ``send(raw:)`` is the response: the connection is kept.
    func answered() { isAnswered = true }

    private func head(_ status: Int, _ fields: Fields) -> String {
        fields.reduce(into: "HTTP/1.1 \(status) \(Status(rawValue: status).reasonPhrase)\r\n") { text, field in
            text += "\(field.name): \(field.value)\r\n"
        }
    }

    // MARK: Ending

    /// Resets the connection now (RST).
    func reset() {
        LoopbackListener.reset(connection)
        isOver = true
    }

    /// Closes the connection after this request. Where content is unread, the kernel makes that a reset.
    func close() {
        shutdown(connection.rawValue, Int32(SHUT_WR))
        isOver = true
    }

    /// Ends this side alone; content can be read all the same.
    func endSending() { shutdown(connection.rawValue, Int32(SHUT_WR)) }

    /// Takes in nothing and sends nothing until the client closes the connection, at most half a minute.
    func stall() {
        LoopbackListener.awaitEnd(of: connection, within: .seconds(600))
        isOver = true
    }

    /// Reads what still comes until the client closes, so that the response is not lost to a reset.
    func drain() {
        endSending()
        while (try? input.discard()) != nil {}
        isOver = true
    }
}
