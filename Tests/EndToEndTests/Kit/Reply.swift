import ConformanceKit
import Glibc
import HTTPSemantics
import SystemCalls
import TestSupport

/// Reads the content of a request and sends the responses, as a script requires. Only the thread of the connection uses
/// this object.
///
/// Reading and sending throw ``WireFailure`` when the connection has ended, or when nothing has happened for half a
/// minute. A script need not catch these errors.
final class Reply {
    private enum Framing {
        /// The number of remaining bytes.
        case sized(Int64)
        /// The number of remaining bytes of the chunk.
        case chunked(Int64)
    }

    private let connection: FileDescriptor
    private let note: (_ content: UnsafeRawBufferPointer, _ isComplete: Bool) -> Void
    private var input: ConnectionInput
    private var framing: Framing
    private let isToHead: Bool
    /// Whether a final response was sent.
    private(set) var isAnswered = false
    /// Whether the connection can no longer be used.
    private(set) var isOver = false
    /// Whether the content was read to its end.
    private(set) var hasReadContent = false

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

    /// Reads `maxCount` bytes of content, or fewer if the content ends.
    func readBody(atMost maxCount: Int) throws -> [UInt8] {
        var result: [UInt8] = []
        try readPart(maxCount) { result.append(contentsOf: $0) }
        return result
    }

    /// Reads all of the content.
    func readAll() throws -> [UInt8] { try readBody(atMost: .max) }

    /// Reads the content, or `maxCount` bytes of it, and discards it.
    /// - Returns: The number of bytes.
    @discardableResult
    func discardBody(atMost maxCount: Int = .max) throws -> Int {
        var count = 0
        try readPart(maxCount) { count += $0.count }
        return count
    }

    private func readPart(_ maxCount: Int, _ body: (UnsafeRawBufferPointer) -> Void) throws {
        var left = maxCount
        while left > 0, try beginPart() {
            let part: Int64
            switch framing {
            case .sized(let size), .chunked(let size): part = size
            }
            let count = try input.readPart(Int(clamping: min(part, Int64(left)))) { bytes in
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

    /// Whether more content follows. Reads the size of the next chunk if necessary.
    private func beginPart() throws -> Bool {
        if hasReadContent || endsHere() { return false }
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
        if case .sized(0) = framing, !hasReadContent { end() }
        return hasReadContent
    }

    private func end() {
        hasReadContent = true
        note(UnsafeRawBufferPointer(start: nil, count: 0), true)
    }

    // MARK: Response

    /// Sends bytes unchanged. A script whose response consists of such bytes calls ``close()`` after the last of them.
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

    /// Sends an interim response.
    func interim(_ status: Int, _ fields: Fields = [:]) throws { try send(raw: head(status, fields) + "\r\n") }

    /// Sends a final response with Content-Length; to HEAD without the content.
    func respond(_ status: Int, _ fields: Fields = [:], _ body: String = "") throws {
        try respond(status, fields, Array(body.utf8))
    }

    func respond(_ status: Int, _ fields: Fields = [:], _ body: [UInt8]) throws {
        isAnswered = true
        let hasLength = status != 204 && status != 304 && !fields.contains("Content-Length")
        let length = hasLength ? "Content-Length: \(body.count)\r\n" : ""
        try send(raw: Array((head(status, fields) + length + "\r\n").utf8) + (isToHead ? [] : body))
    }

    /// Sends the head of a final response; the script sends the content itself, framed as the fields specify.
    func begin(_ status: Int, _ fields: Fields = [:]) throws {
        isAnswered = true
        try send(raw: head(status, fields) + "\r\n")
    }

    /// Sends a chunk of a chunked response; an empty chunk is the last one.
    func send(chunk text: String) throws {
        try send(raw: String(text.utf8.count, radix: 16) + "\r\n" + text + "\r\n")
    }

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

    /// Closes the connection after this request. If content is unread, the kernel resets the connection instead.
    func close() {
        shutdown(connection.rawValue, Int32(SHUT_WR))
        isOver = true
    }

    /// Closes the sending side of the connection; content can still be read.
    func endSending() { shutdown(connection.rawValue, Int32(SHUT_WR)) }

    /// Reads and sends nothing until the client closes the connection, for ten minutes at most.
    func stall() {
        LoopbackListener.awaitEnd(of: connection, within: .seconds(600))
        isOver = true
    }

    /// Reads until the client closes the connection, so that a reset does not destroy the response.
    func drain() {
        endSending()
        while (try? input.discard()) != nil {}
        isOver = true
    }
}
